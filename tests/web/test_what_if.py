"""What if a step had answered otherwise, asked on the step and answered there."""

import html
import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from sessions_app.models import Replay, Run
from sessions_app.web.forks.what_if_words import headline
from tests.web.browsing import arrive, press
from tests.web.forked import make_fork, make_waiting
from tests.web.making import client_of, make_user
from tests.web.records import load_example, load_record, model_step, tool_step

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(shop):
    """Steps: 1 model, 2 tool, 3 model, 4 tool, 5 model."""
    return load_example(shop, "cancel_bug")


def part(run, step):
    return reverse("what_if", args=[run.project.slug, run.session.session_id, step])


def page_of(client, run, step, shown="form"):
    session = reverse("session", args=[run.project.slug, run.session.session_id])
    return client.get(f"{session}?step={step}&what_if={shown}").content.decode()


def text_of(page):
    found = re.search(r'id="what-if".*?</section>', page, re.DOTALL)
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", found[0])).split()) if found else ""


def test_a_step_holds_its_recorded_answer_to_edit_and_says_where_an_edit_stops(bob, run):
    shown = page_of(bob, run, 2)

    assert "Stops at step 3: the model's answer is unknown." in text_of(shown)
    assert 'id="in-result"' in shown
    assert Replay.objects.count() == 0


def test_an_edited_answer_is_queued_as_a_fork_without_more(bob, run):
    response = bob.post(part(run, 2), {"result": "[]", "result_as": "json", "do": "queue"})

    replay = Replay.objects.get()
    assert (replay.mode, replay.order) == (
        "fork",
        {"at_step": 2, "changes": [{"kind": "tool_result", "step": 2, "value": []}]},
    )
    assert response["Location"].endswith(f"step=2&what_if={replay.replay_id}#what-if")


def test_the_models_next_answer_can_be_written_beforehand(bob, run):
    typed = {"result": "[]", "result_as": "json", "answer_text": "Nothing found."}

    checked = bob.post(part(run, 2), typed | {"do": "check"}, headers={"HX-Request": "true"}).content.decode()
    bob.post(part(run, 2), typed | {"do": "queue"})

    assert "The run ends at step 3: an answer without tool calls is its outcome." in text_of(checked)
    said = {"kind": "model_answer", "step": 3, "value": {"text": "Nothing found."}}
    assert Replay.objects.get().order["changes"][1:] == [said]


def test_who_answers_what_was_not_recorded_is_chosen_beforehand(bob, run):
    bob.post(part(run, 2), {"result": "x", "result_as": "text", "on_difference": "play_on", "do": "queue"})

    assert Replay.objects.get().order["on_difference"] == "play_on"


def test_an_answer_of_the_model_is_edited_in_the_same_way(bob, run):
    bob.post(part(run, 3), {"answer_text": "I asked first.", "do": "queue"})

    said = {"kind": "model_answer", "step": 3, "value": {"text": "I asked first."}}
    assert Replay.objects.get().order == {"at_step": 3, "changes": [said]}


def test_what_is_wrong_is_said_in_place_and_nothing_is_queued(bob, run):
    shown = bob.post(part(run, 2), {"result": "{", "result_as": "json", "do": "queue"})

    assert shown.status_code == 422
    assert "Not queued." in shown.content.decode()
    assert Replay.objects.count() == 0


def test_what_came_of_it_stands_beside_what_was_recorded(bob, run):
    made = load_record(
        run.project,
        run_id="made",
        session_id="chat_made",
        origin="fork",
        output="Which order?",
        steps=[model_step(1), tool_step("lookup_order", result=[], source="by_hand")],
    )
    fork = make_fork(run, order={"at_step": 2, "changes": [{"kind": "tool_result", "step": 2, "value": []}]})
    fork.produced_run = made
    fork.save()

    words = text_of(page_of(bob, run, 2, fork.replay_id))

    assert "recorded what if" in words
    assert "by hand" in words
    assert "The outcome was written by hand" not in words
    assert words.rindex("Which order?") > words.index("lookup_order")


def test_a_result_says_in_one_line_what_the_change_did_and_what_that_proves(bob, run):
    steps = [model_step(1), tool_step("lookup_order", result=[], source="by_hand"), model_step(3, source="by_hand")]
    made = load_record(run.project, run_id="made", session_id="m", origin="fork", output="It is 747.", steps=steps)
    run.output_preview = "It is 828."
    run.save()
    order = {"at_step": 2, "changes": [{"kind": "tool_result", "step": 2, "value": []}]}
    fork = make_fork(run, order=order, expectation_met=None, produced_run=made)

    told = text_of(page_of(bob, run, 2, fork.replay_id))

    assert "With the answer []: 828 → 747 The outcome was written by hand: it proves nothing about the agent." in told
    assert "diverged" not in told
    report = bob.get(reverse("replay", args=["shop", fork.replay_id])).content.decode()
    assert 'class="report-verdict verdict-unproven"' in report
    assert "3 steps; the outcome was written by hand: it proves nothing about the agent" in report


@pytest.mark.parametrize(
    ("change", "recorded", "ends", "words"),
    [
        ({"value": {"a": 1, "b": 3}}, '{"a": 1, "b": 2}', ("It is 2.", "It is 3."), "With b 3: 2 → 3"),
        ({"value": []}, '{"a": 1}', ("Yes.", "Yes."), "With the answer []: the same outcome"),
        ({"value": {"a": 1}}, None, ("One two.", "Never."), 'With the answer {"a": 1}: One two → Never'),
        ({"kind": "model_answer"}, None, ("", "Done."), "With this answer: no outcome → Done"),
    ],
)
def test_the_headline_names_the_edited_fields_and_the_words_that_differ(change, recorded, ends, words):
    original, made = (Run(output_preview=text) for text in ends)

    assert headline({"kind": "tool_result", "step": 2, **change}, recorded, original, made) == words


def test_the_head_of_the_session_lists_the_fork_without_a_reload(bob, run):
    fork = make_fork(run)
    session = reverse("session", args=[run.project.slug, run.session.session_id])
    step = reverse("step", args=[run.project.slug, run.session.session_id, 2])

    def brought(to):
        headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{to}"}
        return bob.get(f"{part(run, 2)}?what_if={fork.replay_id}", headers=headers).content.decode()

    head = re.search(r'<section class="tried".*?</section>', brought(session), re.DOTALL)
    assert head is not None
    assert 'hx-swap-oob="true"' in head[0]
    assert f"fork #{fork.number}" in head[0]
    assert 'class="tried"' not in brought(step)


def test_a_stop_is_answered_where_it_is_shown(bob, run):
    fork = make_waiting(run)

    shown = page_of(bob, run, 2, fork.replay_id)

    assert '<input type="hidden" name="what_if" value="2">' in shown
    assert "Stopped at step 4" in text_of(shown)


def test_what_ran_inside_of_another_step_is_edited_there(bob, shop):
    steps = [model_step(1), tool_step("outer"), tool_step("inner", parent=2), model_step(2, after=1)]
    run = load_record(shop, steps=steps)

    assert "This ran inside step 2" in text_of(page_of(bob, run, 3))


def test_a_replay_of_another_run_is_not_shown_here(bob, run, shop):
    other = make_fork(load_record(shop, run_id="other", session_id="other", steps=[model_step(1)]))
    session = reverse("session", args=[run.project.slug, run.session.session_id])

    assert bob.get(f"{session}?step=2&what_if={other.replay_id}").status_code == 404


def test_viewers_are_not_asked(shop, run):
    viewer = client_of(make_user("vera", shop, role="viewer"))

    assert "in-result" not in page_of(viewer, run, 2)
    assert viewer.post(part(run, 2), {"result": "x", "do": "queue"}).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_where_it_stops_follows_what_is_written_and_stands_before_the_button(page, live_server, shop):
    run = load_example(shop, "cancel_bug")
    make_user("bob", shop)
    arrive(page, f"{live_server.url}/p/shop/s/{run.session.session_id}?step=2")
    page.goto(f"{page.url}&what_if=form#what-if")
    told = page.locator("#foretold")
    expect(told).to_contain_text("Stops at step 3")

    seen = page.locator("#what-if :is(textarea, select, summary, [type=submit]):visible")
    assert [" ".join(words.split()[:2]) for words in seen.all_inner_texts()][1:] == ["Options", "Run it"]
    page.wait_for_load_state()
    assert page.evaluate("scrollY") == 0
    expect(page.get_by_role("button", name="Run it")).to_be_in_viewport(ratio=1)
    page.get_by_text("Options", exact=True).click()
    page.get_by_text("Write the model's answer").click()
    page.locator("#in-result").fill("[]")
    page.locator("#in-answer_text").fill("Nothing was found.")
    page.keyboard.press("Tab")

    expect(told).to_contain_text("The run ends at step 3: an answer without tool calls is its outcome.")
    expect(page.locator("#in-answer_text")).to_have_value("Nothing was found.")
    inputs = page.locator("#what-if :is(textarea, select, summary, [type=submit]):visible")
    assert inputs.last.inner_text().startswith("Run it")


@pytest.mark.django_db(transaction=True)
def test_by_keys_it_takes_three_actions(page, live_server, shop):
    run = load_example(shop, "cancel_bug")
    make_user("bob", shop)
    arrive(page, f"{live_server.url}/p/shop/s/{run.session.session_id}?step=2")

    press(page, "w")
    expect(page.locator("#in-result")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("[]")
    press(page, "Control+Enter")

    expect(page.locator("#what-if .state-queued")).to_be_visible()
    expect(page.locator("#what-if-title")).to_be_focused()
    replay = Replay.objects.get()
    assert page.url.endswith(f"step=2&what_if={replay.replay_id}")
    page.reload()
    expect(page.locator("#what-if .state-queued")).to_be_visible()
    press(page, "Escape")
    page.wait_for_url("**/s/*?step=2")
    expect(page.locator("#what-if form")).to_have_count(0)
