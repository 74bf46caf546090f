"""A third run on the diff page: recorded, reproduced, forked."""

import re

import pytest
from django.urls import reverse

from sessions_app.models import Replay
from tests.losing import lose_payloads
from tests.web.making import HOSTILE, make_project, match
from tests.web.records import load_record, model_step, tool_step

pytestmark = pytest.mark.django_db


def diff_of(client, left, right, **query):
    response = client.get(reverse("diff", args=["shop", left, right]), query)
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def trio(shop):
    """Three calls; the second differs in b, the second and the third in c."""
    calls = [tool_step(arguments={"i": i}, result={"n": i}) for i in range(3)]
    load_record(shop, run_id="a", session_id="s", steps=calls)
    load_record(shop, run_id="b", session_id="s", steps=[calls[0], calls[1] | {"result": {"n": "bee"}}, calls[2]])
    changed = [calls[1] | {"result": {"n": "sea"}}, calls[2] | {"result": {"n": "end"}}]
    load_record(shop, run_id="c", session_id="s", output="else", steps=[calls[0], *changed])


def rows_of(page):
    return match(r'<section class="diff-steps"(.*)</main>', page).split('<section class="pair')[1:]


def test_each_field_shows_three_values_and_marks_what_differs(trio, bob):
    second, third = rows_of(diff_of(bob, "a", "b", third="c"))

    assert "<ins>&quot;bee&quot;</ins>" in second or "<ins>bee</ins>" in second
    assert "sea" in second
    assert second.count("side-differs") == 2
    assert "B differs" in second
    assert "C differs" in second
    assert third.count("side-differs") == 1
    assert "B differs" not in third


def test_it_is_said_in_words_which_run_goes_another_way(trio, bob):
    assert "B matches A; C diverges from A at step 2" in diff_of(bob, "a", "a", third="c")
    assert "B diverges from A at step 2; C diverges from A at step 2" in diff_of(bob, "a", "b", third="c")


def test_two_runs_that_differ_alike_from_the_first_are_told_together(shop, bob):
    for run_id, found in (("a", []), ("b", [{"id": "d1"}]), ("c", [{"id": "d1"}])):
        load_record(shop, run_id=run_id, session_id=run_id, output="x", steps=[tool_step("look", result=found)])

    page = diff_of(bob, "a", "b", third="c")

    assert '<p class="story">Step 1: look returned none in A, 1 result in B and C</p>' in page
    assert "three-parts" not in page


def test_three_runs_can_be_copied_for_a_ticket(trio, bob):
    page = diff_of(bob, "a", "b", third="c")

    ticket = match(r'data-copy="(.*?)"', page).splitlines()
    assert ticket[0] == "B diverges from A at step 2; C diverges from A at step 2."
    compared = [line.split(":")[0] for line in ticket if " against " in line]
    assert compared == ["a (A) against b (B)", "a (A) against c (C)"]
    assert ticket[-1].endswith("third=c")
    assert "1 fact differs or can" in page


def test_what_is_the_same_in_all_three_is_folded(trio, bob):
    page = diff_of(bob, "a", "b", third="c")

    assert "1 same in all three" in page
    assert "1 same</span>" in page
    assert "1 same</span>" not in diff_of(bob, "a", "b", third="c", only="changes")
    assert rows_of(diff_of(bob, "a", "a", third="a")) == []


def test_a_step_that_differs_only_in_the_third_is_shown(trio, bob):
    two, three = diff_of(bob, "a", "a"), diff_of(bob, "a", "a", third="c")

    assert 'class="pair ' not in two
    assert three.count('class="pair ') == 2


def test_facts_have_three_values_too(trio, bob):
    facts = match(r'<section class="facts-diff"(.*?)</section>', diff_of(bob, "a", "b", third="c"))

    assert facts.count("&quot;done&quot;") == 2
    assert "else" in facts


def test_a_step_that_a_run_lacks_is_said(shop, bob):
    load_record(shop, run_id="a", steps=[tool_step("first"), tool_step("second")])
    load_record(shop, run_id="c", session_id="s2", steps=[tool_step("first"), tool_step("extra"), tool_step("more")])

    page = diff_of(bob, "a", "a", third="c")

    assert "A has ended" in page
    assert "only in C" in page
    assert "no such step in C" in page


def test_switches_keep_the_third_column_and_one_takes_it_away(trio, bob):
    page = diff_of(bob, "a", "b", third="c")

    assert 'href="?only=changes&amp;third=c&amp;"' in page
    assert 'href="/p/shop/diff/b...a?third=c&amp;"' in page
    assert "Two columns" in page
    assert "Two columns" not in diff_of(bob, "a", "b")
    assert "diff_viewed" not in page
    assert 'class="viewed-form"' not in page


def test_a_third_run_that_is_not_here_is_named(trio, bob):
    load_record(make_project("other"), run_id="theirs", steps=[tool_step()])

    for run_id in ("gone", "theirs"):
        response = bob.get(reverse("diff", args=["shop", "a", "b"]), {"third": run_id})
        assert response.status_code == 404
        assert run_id in response.content.decode()


def test_bytes_that_are_gone_are_said(trio, shop, bob):
    lose_payloads(shop)

    response = bob.get(reverse("diff", args=["shop", "a", "b"]), {"third": "c"})

    assert response.status_code == 410


def test_many_rows_are_paged(shop, bob):
    for name, sign in (("a", 1), ("b", 1), ("c", -1)):
        steps = [tool_step(arguments={"i": sign * (i + 1)}) for i in range(150)]
        load_record(shop, run_id=name, session_id=name, steps=steps)

    page = diff_of(bob, "a", "b", third="c")
    asked = diff_of(bob, "a", "b", third="c", step=140)

    assert page.count('class="pair ') == 60
    assert "third=c&amp;at=60" in page
    assert ">A 140</a>" in asked


def test_hostile_runs_are_text(shop, bob):
    load_record(shop, run_id="a", steps=[tool_step(result={"x": 1})])
    load_record(shop, run_id="c", session_id="s2", steps=[tool_step(result={HOSTILE: HOSTILE})], output=HOSTILE)

    page = diff_of(bob, "a", "a", third="c")

    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_a_change_that_was_there_at_an_earlier_step_is_folded_under_it(shop, bob):
    def run(run_id, status):
        steps = [tool_step(result={"status": status}), tool_step("tell", arguments={"status": status}, result="ok")]
        load_record(shop, run_id=run_id, session_id="s", steps=steps)

    for run_id, status in (("a", "shipped"), ("b", "delivered"), ("c", "returned")):
        run(run_id, status)

    first, second = rows_of(diff_of(bob, "a", "b", third="c"))

    assert "follows from" not in first
    folded = match(r'<details class="follows">(.*?)</details>', second)
    assert "follows from A 1: 1 place" in " ".join(folded.split())
    assert "returned" in folded


def test_the_third_run_goes_by_its_own_letter_and_says_where_it_waits(trio, shop, bob):
    steps = [
        tool_step(arguments={"i": 0}, result={"n": 0}),
        tool_step("other", arguments={"i": 9}, result=None, source="unknown"),
    ]
    load_record(shop, run_id="waits", session_id="waits", steps=steps, status="cut_off", output=None)

    page = diff_of(bob, "a", "b", third="waits")

    assert "; C calls other(9), and stops there" in page
    assert "; C stopped at step 2, without an answer" in page
    assert "no such step in C" not in page


def test_what_a_run_did_not_capture_is_said_and_not_taken_for_absent(shop, bob):
    whole = model_step(response={"kind": "response", "parts": [{"part_kind": "text", "content": "yes"}]})
    other = model_step(response={"kind": "response", "parts": [{"part_kind": "text", "content": "no"}]})
    bare = {name: value for name, value in whole.items() if name != "response"}
    for run_id, step in (("a", whole), ("b", bare), ("c", other)):
        load_record(shop, run_id=run_id, session_id=run_id, output="done", steps=[step])

    (row,) = rows_of(diff_of(bob, "a", "b", third="c"))

    assert "not captured in B, so not comparable: answer" in row
    assert match(r'side-name">B</span><span class="recorded">(.*?)</div>', row).startswith(
        '<span class="none">not capt'
    )
    assert "absent" not in row
    assert "parts[0]" not in " ".join(re.findall(r">([^<]+)<", row))


def test_where_a_run_stopped_it_lacks_nothing_and_columns_say_what_made_the_runs(shop, bob):
    parent = load_record(shop, run_id="a", session_id="a", steps=[tool_step(result={"n": 1})])
    forked = {"status": "cut_off", "output": None, "steps": [tool_step(result=None, source="unknown")]}
    made = load_record(shop, run_id="b", session_id="b", **forked)
    known = {"project": shop, "run": parent, "content": parent.content, "state": "done"}
    Replay.objects.create(**known, number=3, mode="fork", order={"at_step": 1}, produced_run=made)

    page = diff_of(bob, "a", "b", third="a")

    assert '<span class="side-made">fork #3</span>' in page
    assert "Diff with fork #3 and another run" in page
    assert "none: it stopped" in page
    assert "not captured in B" not in page
