"""The fork page without a step: the one that it proposes, why, and which others there are."""

import html
import re

import pytest
from django.urls import reverse

from tests.web.making import HOSTILE, match
from tests.web.records import load_record, loop_of, model_step, tool_step

pytestmark = pytest.mark.django_db
FAILED = {"error": {"type": "TimeoutError", "message": "too slow"}}


def page_of(client, run, **query):
    return client.get(reverse("fork", args=[run.project.slug, run.session.session_id]), query).content.decode()


def words_in(page, pattern):
    return html.unescape(" ".join(re.sub(r"<[^>]+>", "", match(pattern, page)).split()))


def proposed_in(page):
    return words_in(page, r'id="fork-proposed">(.*?)</span>')


def others_in(page):
    return words_in(page, r'class="small soft fork-starts">(.*?)</p>')


def distinct(name, index, **fields):
    return tool_step(name, parent=1, arguments={"n": index}, result={"n": index}, **fields)


def test_the_step_that_the_run_failed_at_is_proposed(shop, bob):
    steps = [model_step(1), distinct("a", 1, **FAILED), distinct("b", 2, **FAILED), distinct("c", 3)]
    run = load_record(shop, status="error", error={"type": "TimeoutError", "message": "x"}, output=None, steps=steps)

    page = page_of(bob, run)

    assert "Fork from step 3" in match(r"<h1[^>]*>(.*?)</h1>", page)
    assert proposed_in(page) == ("Starting at step 3, which failed: TimeoutError: too slow.")


def test_of_a_run_that_went_on_the_first_failed_step_is_proposed(shop, bob):
    steps = [model_step(1), distinct("a", 1, **FAILED), distinct("b", 2, **FAILED), distinct("c", 3)]
    run = load_record(shop, output="The time-out is an error.", steps=steps)

    page = page_of(bob, run)

    assert "Starting at step 2, which failed: TimeoutError" in proposed_in(page)


def test_without_a_failure_the_first_odd_step_is_proposed(shop, bob):
    run = load_record(shop, steps=loop_of(3))

    page = page_of(bob, run)

    assert "Starting at step 2, the first anomaly: Empty result retried: search_docs." in proposed_in(page)
    assert others_in(page) == "Or fork from step 6, the last tool call."


def test_of_a_repeated_call_the_repeat_is_proposed(shop, bob):
    run = load_record(shop, steps=[model_step(1), distinct("a", 1), distinct("a", 1), distinct("b", 2)])

    assert "step 3, the first anomaly: Duplicate call: a." in proposed_in(page_of(bob, run))


@pytest.mark.parametrize("result", [[], {}, {"hits": [], "total": 0}, {"found": False}])
def test_a_call_that_found_nothing_is_proposed_before_what_may_be_as_it_was_meant(shop, bob, result):
    """A call that was made again is no failure; an answer without anything in it is what a person would change."""
    empty = tool_step("search", parent=1, arguments={"n": 9}, result=result)
    again = [distinct("a", 1), distinct("a", 1)]
    run = load_record(shop, steps=[model_step(1), *again, empty, distinct("b", 2), model_step(2, after=1)])

    page = page_of(bob, run)

    assert proposed_in(page) == "Starting at step 4, whose answer is empty."
    assert others_in(page).startswith("Or fork from step 3, the first anomaly: Duplicate call: a; step 5, the last")


def test_an_answer_that_was_not_captured_is_not_called_empty(shop, bob):
    lost = distinct("a", 1)
    del lost["result"]
    run = load_record(shop, steps=[model_step(1), lost, distinct("b", 2)])

    assert proposed_in(page_of(bob, run)) == "Starting at step 3, the last tool call."


def test_otherwise_the_last_tool_call_is_proposed(shop, bob):
    run = load_record(shop, steps=[model_step(1), distinct("a", 1), distinct("b", 2), model_step(2, after=1)])

    page = page_of(bob, run)

    assert "Starting at step 3, the last tool call." in proposed_in(page)
    assert "Or fork from" not in page


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([model_step(1), model_step(2, after=1)], "step 2, the last request to the model."),
        ([{"kind": "other", "name": "guard"}], "step 1, the first step."),
    ],
)
def test_a_run_without_tools_has_a_proposal_too(shop, bob, steps, words):
    run = load_record(shop, steps=steps)

    assert proposed_in(page_of(bob, run)).endswith(f"Starting at {words}")


def test_a_run_without_steps_has_no_fork_page(shop, bob):
    run = load_record(shop, steps=[])

    assert bob.get(reverse("fork", args=["shop", run.session.session_id])).status_code == 404


def test_what_failed_inside_a_tool_is_not_proposed(shop, bob):
    inner = tool_step("inner", parent=2, arguments={"n": 9}, **FAILED)
    run = load_record(shop, steps=[model_step(1), distinct("a", 1), inner, distinct("b", 2)])

    assert "step 4, the last tool call" in proposed_in(page_of(bob, run))


def test_what_fits_the_step_is_the_first_change_and_the_recorded_answer_stands_before_the_others(shop, bob):
    run = load_record(shop, steps=[model_step(1), distinct("a", 1), model_step(2, after=1)])

    page = page_of(bob, run)

    assert match(r'data-card="(.*?)"', page) == "result"
    assert page.index('name="result"') < page.index('name="preset"')
    assert match(r'data-card="(.*?)"', page_of(bob, run, step="1")) == "instructions"


def test_a_step_that_is_named_is_taken_and_the_proposals_are_links(shop, bob):
    steps = [model_step(1), distinct("a", 1), distinct("b", 2, **FAILED), distinct("c", 3)]
    run = load_record(shop, output="It failed with an error.", steps=steps)
    path = reverse("fork", args=["shop", run.session.session_id])

    page = page_of(bob, run, step="2")

    assert "Fork from step 2" in match(r"<h1[^>]*>(.*?)</h1>", page)
    assert 'id="fork-proposed"' not in page
    assert f'<a href="{path}?step=3">step 3</a>, which failed: TimeoutError: too slow' in page
    assert f'<a href="{path}?step=4">step 4</a>, the last tool call' in page


def test_a_proposed_step_is_the_one_that_the_form_posts_to(shop, bob):
    run = load_record(shop, steps=[model_step(1), distinct("a", 1), model_step(2, after=1)])

    assert match(r'method="post"\s+action="([^"]*)"\s+id="fork"', page_of(bob, run)).endswith("?step=2")


def test_recorded_words_of_a_proposal_are_never_markup(shop, bob):
    error = {"type": HOSTILE, "message": HOSTILE}
    run = load_record(shop, output="error", steps=[model_step(1), distinct("a", 1, error=error)])

    page = page_of(bob, run)

    assert "failed: " in proposed_in(page)
    assert "<script>alert" not in page
    assert "\u202e" not in proposed_in(page)
