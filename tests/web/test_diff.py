"""Two runs side by side."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from playwright.sync_api import expect

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.models import Replay, Run
from sessions_app.web.render.changes import field_of
from tests.losing import lose_payloads
from tests.web.browsing import arrive, press
from tests.web.making import HOSTILE, client_of, make_project, make_user, match
from tests.web.records import load_example, load_record, model_step, tool_step

pytestmark = pytest.mark.django_db


def diff_of(client, left, right, **query):
    response = client.get(reverse("diff", args=["shop", left, right]), query)
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def pair(shop):
    """Seven calls; the fourth differs in a field that only the right has."""
    calls = [tool_step(arguments={"i": i}) for i in range(7)]
    load_record(shop, run_id="a", session_id="s", model="sonnet-4-2510", steps=calls)
    other = list(calls)
    other[3] = tool_step(arguments={"i": 3, "user_id": "u_7710"})
    load_record(shop, run_id="b", session_id="s", model="sonnet-4-2511", steps=other)


def lead_of(page):
    return match(r'<p class="story">(.*?)</p>', page)


def words_of(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_the_first_divergence_is_a_sentence_with_its_field(pair, bob):
    page = diff_of(bob, "a", "b")

    assert lead_of(page) == "Step 4, lookup: argument user_id absent → &quot;u_7710&quot;"
    assert '<span title="args.user_id">argument user_id</span>' in page


def test_a_step_that_a_replay_did_not_come_to_has_one_number_and_its_end_is_told(shop, bob):
    run = load_record(shop, run_id="a", session_id="s", steps=[tool_step(), tool_step(arguments={"q": "y"})])
    made = load_record(shop, run_id="b", session_id="s", steps=[tool_step()])
    Replay.objects.create(
        project=shop, run=run, content=run.content, produced_run=made, number=1, state="done",
        verdict="fixture_missing", stopped_at={"step": 2},
    )  # fmt: skip

    page = words_of(diff_of(bob, "a", "b"))

    assert "Step 2: only A calls lookup(y)" in page
    assert "steps[1] " not in page.partition("B is replay")[0]
    assert "B is replay #1: fixture missing at step 2" in page


def test_where_the_questions_differ_what_does_not_follow_from_that_leads(shop, bob):
    def asked(run_id, order, found, user):
        look = tool_step("look", arguments={"order": order}, result={"order": found, "user": user})
        said = f"Cancel {order}, please."
        load_record(shop, run_id=run_id, session_id=run_id, input=said, output=f"Done: {order}", steps=[look])

    asked("a", "ORD-1", "ORD-1", "u_1")
    asked("b", "ORD-2", "ORD-2", "u_1")
    asked("c", "ORD-2", "ORD-9", "u_1")

    same, wrong = (diff_of(bob, "a", right) for right in "bc")

    assert "The questions differ: ORD-1 → ORD-2." in same
    assert lead_of(same) == "All that differs follows from the questions"
    assert 'step=1#p0"' in wrong
    assert lead_of(wrong) == "Step 1, look: tool answer, order &quot;ORD-1&quot; → &quot;ORD-9&quot;"


def test_where_the_questions_differ_another_call_leads_and_not_what_was_found_for_them(shop, bob):
    def asked(run_id, order, days, more):
        look = tool_step("look", arguments={"order": order}, result={"order": order, "days": days, "ref": f"rf_{days}"})
        said = f"Cancel {order}{more}"
        refund = tool_step("refund", arguments={"order": order})
        check = [tool_step("check", arguments={"q": "30 days"})] if run_id == "a" else []
        load_record(shop, run_id=run_id, session_id=run_id, input=said, steps=[look, *check, refund])

    asked("a", "ORD-1", 12, "?")
    asked("b", "ORD-2", 74, ", please, for it is for my daughter.")

    page = diff_of(bob, "a", "b")

    assert lead_of(page) == "Step 2: only A calls check(30 days)"
    assert "Step 1, look: tool answer, days 12 → 74" in page
    assert "The questions differ: &quot;Cancel ORD-1?&quot; → &quot;Cancel ORD-2, please, for it is for" in page
    assert page.count("<summary>follows from the question: ") == 2
    assert 'step=2#p1"' in page


def tool_called(name, **properties):
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": "Looks.", "parameters_json_schema": schema}


def test_the_definition_of_a_tool_is_named_and_shown_as_its_signature(shop, bob):
    look, track = tool_called("look", order={"type": "string"}), tool_called("track", parcel={"type": "string"})
    wide = tool_called("look", order={"type": "string"}, user={"type": "string"})
    for name, tools in {"a": [look], "b": [look, track], "c": [wide]}.items():
        steps = [model_step(tools=list(range(len(tools))))]
        load_record(shop, run_id=name, session_id=name, tools=tools, steps=steps)

    more, other = diff_of(bob, "a", "b"), diff_of(bob, "a", "c")

    assert lead_of(more) == "Step 1: only B offers the tool track to sonnet-4"
    assert "Set-up differs: tool track only in B." in more
    assert "track(parcel): Looks." in more
    assert "parameters_json_schema" not in words_of(more)
    assert lead_of(other) == "Step 1: the tool look is defined differently: parameter user"


def test_a_run_that_waits_for_an_answer_says_so_where_it_has_no_steps(shop, bob):
    load_record(shop, run_id="a", steps=[tool_step(arguments={"q": i}) for i in range(3)], output="done")
    steps = [tool_step(arguments={"q": 0}), tool_step("other", source="unknown", result=None)]
    load_record(shop, run_id="b", session_id="s2", steps=steps, status="cut_off", output=None)

    page = diff_of(bob, "a", "b")

    assert lead_of(page) == "Step 2: A calls lookup(1); B calls other(x), and stops there"
    assert "B stopped at step 2, without an answer" in page
    assert "no such step in B" not in page
    assert page.count('<span class="soft">B stopped at step 2</span>') == 2
    assert "stopped here</span>" in page


def test_fields_that_one_run_did_not_capture_are_one_line_of_their_step(shop, bob):
    told = model_step(answered_model="sonnet-4-2510", finish_reason="stop")
    load_record(shop, run_id="a", steps=[told, tool_step()])
    load_record(shop, run_id="b", session_id="s2", steps=[model_step(), tool_step(result={"found": 2})])

    page = diff_of(bob, "a", "b")

    assert "not captured in B, so not comparable: model that answered, finish reason" in page


def told_again(status, *, inner):
    """A lookup, and two tools that are given what it said."""
    answer = {"text": status, "n": 1}
    calls = [tool_step("look", arguments={"id": 1}, result=answer), {"kind": "other", "name": "route"}]
    return [*calls[: 2 if inner else 1], *[tool_step(name, arguments={"id": 1} | answer) for name in ("tell", "file")]]


def test_what_follows_from_a_difference_is_folded_and_told_in_three_lines(shop, bob):
    load_record(shop, run_id="a", steps=told_again("on its way", inner=True))
    load_record(shop, run_id="b", steps=told_again("delivered", inner=True))

    page = diff_of(bob, "a", "b")

    assert page.count('<details class="follows">') == 2
    assert "follows from step 1: 1 place<" in page
    ticket = match(r'aria-label="For a ticket">(.*?)</pre>', page).splitlines()
    assert ticket[0] == "a (A) against b (B): 3 of 3 steps differ"
    assert ticket[1] == "Step 1, look: tool answer, text &quot;on its way&quot; → &quot;delivered&quot;"
    assert ticket[-1] == "http://testserver/p/shop/diff/a...b"
    assert "2 other places follow from the first difference" in page


def test_what_only_one_run_has_is_folded_where_it_is_told_again(shop, bob):
    found = {"text": "delivered", "n": 1}
    for name, answer in (("a", []), ("b", [found])):
        steps = [tool_step("look", result=answer), tool_step("tell", arguments={"orders": answer})]
        load_record(shop, run_id=name, steps=steps)

    assert "follows from step 1: 1 place<" in diff_of(bob, "a", "b")


def test_counts_of_a_comparison_leave_out_inner_steps(shop, bob):
    load_record(shop, run_id="a", steps=told_again("x", inner=True))
    load_record(shop, run_id="b", steps=told_again("x", inner=False))

    assert "No difference in 3 steps," in diff_of(bob, "a", "a")
    page = diff_of(bob, "a", "b")
    assert "3 same</span>" in page
    assert "1 inner step of a framework differs</span>" in page
    assert "of 3 steps ·" in page


def test_facts_that_differ_are_marked_in_the_text(pair, bob):
    page = diff_of(bob, "a", "b")

    assert "sonnet-4-<del>2510</del>" in page
    assert "sonnet-4-<ins>2511</ins>" in page


def test_equal_steps_are_folded_and_can_be_left_out(pair, bob):
    page = diff_of(bob, "a", "b")
    changes = diff_of(bob, "a", "b", only="changes")

    assert page.count("3 same</span>") == 2
    assert "same</span>" not in match(r'<section class="diff-steps"(.*?)</section>\s*</div>', changes)
    assert page.count('<section class="pair pair-changed"') == 1


def test_no_difference_says_how_much_was_compared(shop, bob):
    load_example(shop, "r_8821")

    page = diff_of(bob, "r_8821", "r_8821")

    assert "No difference in 3 steps," in page
    assert "fields" in page


def test_facts_are_told_as_what_they_are(shop, bob):
    """Known to differ, captured on one side, the same, and captured in neither run."""
    load_record(shop, run_id="a", session_id="a", model="sonnet-4-2510", region="eu", steps=[tool_step()])
    load_record(shop, run_id="b", session_id="b", model="sonnet-4-2511", steps=[tool_step()])

    facts = match(r'<section class="facts-diff"(.*?)</section>', diff_of(bob, "a", "b"))
    of_one = match(r'<section class="facts-diff"(.*?)</section>', diff_of(bob, "a", "a"))

    assert "1 differs, 1 cannot be compared</span>" in facts
    assert "0 differ</span>" in of_one
    assert "No facts differ: " in of_one
    same, bare = match(r"<dl>(.*?)</dl>", of_one), match(r"captured in neither run</summary>(.*?)</p>", of_one)
    assert "not captured" not in same
    assert "<dt>region</dt>" in same
    assert "provider" in bare
    assert "region" not in bare


def test_a_fact_that_a_rule_leaves_out_is_shown_with_both_values(shop, bob):
    for name in ("a", "b"):
        load_record(shop, run_id=name, session_id=name, code={"commit": f"{name}0c1"}, steps=[tool_step()])

    page = diff_of(bob, "a", "b")

    assert "No difference in 1 step" in page
    assert "the same or left out by a rule</summary>" in page
    told = match(r"<dt>code.commit</dt>(.*?)</div>", page)
    assert re.findall(r"[ab]0c1", told) == ["a0c1", "b0c1"]


def test_volatile_fields_are_counted_and_can_be_compared(shop, bob):
    at = "2026-11-17T15:14:0{}Z"
    for name, second in (("a", 1), ("b", 2)):
        load_record(shop, run_id=name, session_id=name, steps=[tool_step(started_at=at.format(second))])

    page = diff_of(bob, "a", "b")
    compared = diff_of(bob, "a", "b", v="step-time")

    assert "start and duration of a step" in page
    assert "v=step-time" in page
    assert "started_at" not in match(r'<section class="diff-steps"(.*?)</section>', page)
    assert "started_at" in compared
    assert "ignore again" in compared


def test_one_column_on_demand(pair, bob):
    page = diff_of(bob, "a", "b", mode="unified")

    assert '<span class="sign" aria-hidden="true">+</span>' in page
    assert '<span class="sign"' not in diff_of(bob, "a", "b", mode="nonsense")


def test_sides_can_be_swapped_and_the_rest_of_the_address_stays(pair, bob):
    page = diff_of(bob, "a", "b", mode="unified", only="changes")

    assert f'href="{reverse("diff", args=["shop", "b", "a"])}?mode=unified&amp;only=changes&amp;"' in page


def test_steps_that_only_one_side_has(shop, bob):
    load_record(shop, run_id="a", steps=[tool_step("first"), tool_step("second")])
    load_record(shop, run_id="b", session_id="s2", steps=[tool_step("first"), tool_step("extra"), tool_step("second")])

    page = diff_of(bob, "a", "b")

    assert "no such step in A" in page
    assert "only in B" in page


def test_steps_in_a_row_that_one_side_has_are_one_line(shop, bob):
    calls = [tool_step("go", arguments={"i": i}) for i in range(12)]
    load_record(shop, run_id="a", steps=calls)
    load_record(shop, run_id="b", session_id="s2", steps=calls[:3])

    there, back = diff_of(bob, "a", "b"), diff_of(bob, "b", "a")
    at_step = diff_of(bob, "a", "b", step=9)

    assert "<summary>A goes on for 9 more steps</summary>" in there
    assert "<summary>B goes on for 9 more steps</summary>" in back
    assert "no such step in B" not in there
    assert "open" not in match(r'<details (class="alone[^>]*)>', there)
    assert "open" in match(r'<details (class="alone[^>]*)>', at_step)
    assert 'class="mark-only_left"' in there


def test_numbers_that_are_spelled_differently_are_a_difference_with_a_note(shop, bob):
    load_record(shop, run_id="a", steps=[tool_step(result={"n": 1})])
    load_record(shop, run_id="b", session_id="s2", steps=[tool_step(result={"n": 1.0})])

    assert "same number, other text" in diff_of(bob, "a", "b")


def test_a_run_that_is_not_here_is_named(shop, bob):
    load_example(shop, "r_8821")

    response = bob.get(reverse("diff", args=["shop", "r_8821", "gone <b>"]))

    assert response.status_code == 404
    assert "gone &lt;b&gt;" in response.content.decode()


def test_runs_of_other_projects_are_not_here(shop, bob):
    load_example(shop, "r_8821")
    load_record(make_project("other"), run_id="theirs", steps=[tool_step()])

    assert bob.get(reverse("diff", args=["shop", "r_8821", "theirs"])).status_code == 404


def test_bytes_that_are_gone_are_said(shop, bob):
    load_example(shop, "r_8821")
    lose_payloads(shop)

    response = bob.get(reverse("diff", args=["shop", "r_8821", "r_8821"]))

    assert response.status_code == 410
    assert "no longer stored" in response.content.decode()


def test_hostile_runs_can_be_compared(shop, bob):
    odd = "a/../b...c?<x>"
    load_record(shop, run_id=odd, steps=[model_step(), tool_step(result={HOSTILE: HOSTILE})], output=HOSTILE)
    load_record(shop, run_id="plain", session_id="s2", steps=[tool_step(result={HOSTILE: "other"})])

    page = diff_of(bob, odd, "plain")

    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "a/../b...c?&lt;x&gt;" in page


def test_many_changes_are_paged(shop, bob):
    load_record(shop, run_id="a", steps=[tool_step(arguments={"i": i}) for i in range(150)])
    load_record(shop, run_id="b", session_id="s2", steps=[tool_step(arguments={"i": -i - 1}) for i in range(150)])

    page = diff_of(bob, "a", "b")
    asked = diff_of(bob, "a", "b", step=140)

    assert page.count('<section class="pair ') == 60
    assert "next rows" in page
    assert ">A 140</a>" in asked
    assert len(page) < 300 * 1024


def test_a_partner_typed_by_hand_leads_to_the_diff(shop, bob):
    run = load_example(shop, "r_8821")

    response = bob.get(reverse("session", args=["shop", run.session.session_id]), {"with": "x/y"})

    assert response["Location"] == reverse("diff", args=["shop", "r_8821", "x/y"])


def test_a_message_that_only_one_side_has_is_shown_by_what_it_says():
    call = {"part_kind": "tool-call", "tool_name": "find", "args": {"q": "x"}, "tool_call_id": "c1"}
    message = {"kind": "response", "parts": [{"part_kind": "text", "content": "One moment."}, call], "usage": {}}

    shown = field_of("prior[2]", MISSING, message)

    assert "".join(bit.text for bit in shown.right) == 'model: One moment.\nmodel calls find({"q": "x"})'
    assert (shown.words, shown.note) == ("message 3", "")


def test_token_counts_that_answers_carry_themselves_are_one_difference_each(shop, bob):
    for run_id, tokens in (("a", 5), ("b", 7)):
        answer = {"parts": [{"part_kind": "text", "content": "Hi"}], "usage": {"input_tokens": tokens}}
        step = model_step(1) | {"response": answer, "input_tokens": tokens, "output_tokens": tokens}
        load_record(shop, run_id=run_id, session_id="s", output="Hi", steps=[step])

    page = diff_of(bob, "a", "b")

    assert re.findall(r'<span title="([^"]*tokens)">([^<]*)</span>', page) == [
        ("response.usage.input_tokens", "input tokens"),
        ("output_tokens", "output tokens"),
    ]


def test_results_that_only_one_side_has_are_counted_in_the_first_line(shop, bob):
    for run_id, found in (("a", [{"id": 1}]), ("b", [])):
        load_record(shop, run_id=run_id, session_id="s", steps=[tool_step("search", result=found)])

    assert lead_of(diff_of(bob, "a", "b")) == "Step 1: search returned 1 result in A, none in B"
    assert lead_of(diff_of(bob, "b", "a")) == "Step 1: search returned none in A, 1 result in B"


def test_a_value_that_only_one_side_has_is_shown_without_its_empty_members():
    shown = field_of("final", MISSING, {"text": "Hi", "id": None, "usage": {"tokens": 0, "details": {}}})

    assert "".join(bit.text for bit in shown.right) == '{"text": "Hi", "usage": {"tokens": 0}}'
    assert shown.note == "null and empty fields omitted"


@pytest.fixture
def twins(shop):
    """A run with two that went well and are like it, one that is not, and one that failed."""
    asked = {"agent": {"name": "desk"}, "output": "done"}
    for run_id, words in {"far": "Cancel it.", "near": "Where is order 8?", "same": "Where is my order 7?"}.items():
        load_record(shop, run_id=run_id, session_id=run_id, input=words, **asked)
    load_record(shop, run_id="failed", session_id="failed", input="Where is my order 7?", status="error", **asked)
    load_record(shop, run_id="bad", session_id="bad", input="Where is my order 7?", **asked)


def test_without_any_run_to_compare_with_it_is_said_what_to_do(shop, bob):
    load_record(shop, run_id="alone", session_id="alone", agent={"name": "order desk"})

    page = bob.get("/p/shop/s/alone/twins").content.decode()

    assert "No run to compare with yet" in page
    assert 'href="/p/shop/sessions?q=agent%3A%22order%20desk%22"' in page
    assert 'name="with"' in page


@pytest.mark.usefixtures("twins")
def test_a_run_to_compare_with_is_opened_by_its_name_and_compared_by_a_button(bob):
    page = bob.get("/p/shop/s/bad/twins").content.decode()

    assert 'href="/p/shop/s/same?run=same"' in page
    assert page.count("Compare<span") == 2
    assert "the words of the question are most alike" in page


def test_answers_that_differ_stand_in_the_head_and_at_their_step_alone(shop, bob):
    for run_id, words in (("a", "Yes, until two."), ("b", "Never, not ever.")):
        said = {"kind": "response", "parts": [{"part_kind": "text", "content": words}]}
        load_record(shop, run_id=run_id, output=words, steps=[tool_step(), model_step(2, response=said)])

    page = words_of(diff_of(bob, "a", "b"))

    assert "final answer the answer of step A 2 and B 2" in page
    assert page.count("Yes , until two") == 1


@pytest.mark.usefixtures("twins")
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_runs_of_the_same_agent_that_ended_well_are_offered_the_most_alike_first(bob, headers):
    page = bob.get("/p/shop/s/bad/twins", headers=headers).content.decode()

    assert list(dict.fromkeys(re.findall(r"bad\.\.\.(\w+)", page))) == ["same", "near"]
    assert re.findall(r"(same|similar|different) question", page) == ["same", "similar"]


def test_a_run_to_compare_with_is_told_by_its_answer_and_by_its_question_where_that_differs(shop, bob):
    runs = (
        ("bad", "Can I leave late?", "Never."),
        ("same", "Can I leave late?", "Until 14:00."),
        ("far", "Can I leave very late?", "Yes."),
    )
    for run_id, asked, answered in runs:
        load_record(shop, run_id=run_id, session_id=run_id, input=asked, output=answered, agent={"name": "desk"})

    head, _, rows = bob.get("/p/shop/s/bad/twins").content.decode().partition("<table")

    assert all(answer in rows for answer in ("Until 14:00.", "Yes."))
    assert ("Never." in head, "Can I leave very late?" in rows, "Can I leave late?" in rows) == (True, True, False)
    assert re.search(r'bad\.\.\.same"\s+data-next', head)


@pytest.mark.usefixtures("twins")
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_run_whose_answer_may_be_wrong_did_not_end_well(bob, headers):
    odd = {"code": "refusal_unsaid", "message": "charge_card was declined", "steps": [2], "level": "warning"}
    Run.objects.filter(run_id="same").update(anomalies=[odd])
    Run.objects.filter(run_id="near").update(anomalies=[odd | {"code": "finish_order", "level": "info"}])

    page = bob.get("/p/shop/s/bad/twins", headers=headers).content.decode()

    assert list(dict.fromkeys(re.findall(r"bad\.\.\.(\w+)", page))) == ["near"]


def test_where_no_run_went_well_its_failure_group_comes_first(shop, bob):
    crashed = {
        "agent": {"name": "desk"},
        "status": "error",
        "error": {"type": "ValueError", "message": "out of memory"},
    }
    for number in range(5):
        load_record(shop, run_id=f"r{number}", session_id=f"r{number}", input="Print it", **crashed)
    Run.objects.update(verdict="replayable")
    group = Run.objects.get(run_id="r0").failure_group

    page = " ".join(bob.get("/p/shop/s/r0/twins").content.decode().split())

    assert match(r'<a class="btn btn-main" href="([^"]*)"', page) == f"/p/shop/sessions?q=group%3A{group}"
    assert "went well; 4 others failed the same way" in page
    assert "1 more that failed the same way" in page
    assert [page.count("ValueError: out of memory"), page.count("without an answer")] == [4, 0]


def test_without_a_similar_good_run_other_good_ones_and_those_that_failed_alike_are_offered(shop, bob):
    before = {"agent": {"name": "desk", "version": "1"}}
    asked = {"agent": {"name": "desk", "version": "2"}}
    crashed = {"status": "error", "error": {"type": "ValueError", "message": "no"}}
    load_record(shop, run_id="old", session_id="old", input="Hello", output="Hi", **before)
    load_record(shop, run_id="good", session_id="good", input="Hello", output="Hi", **asked)
    load_record(shop, run_id="alike", session_id="alike", input="Refund order 7 in full", **asked, **crashed)
    load_record(shop, run_id="bad", session_id="bad", input="Please give the money back", **asked, **crashed)
    Run.objects.filter(run_id="alike").update(verdict="replayable")

    page = bob.get("/p/shop/s/bad/twins").content.decode()

    assert list(dict.fromkeys(re.findall(r"bad\.\.\.(\w+)", page))) == ["good", "old", "alike"]
    assert "version 1, here 2" in page
    assert 'name="with"' in page


@pytest.mark.usefixtures("twins")
def test_good_twins_are_looked_for_when_the_menu_opens(page, bob, live_server):
    arrive(page, f"{live_server.url}/p/shop/s/bad")
    with page.expect_response("**/twins?run=bad"):
        press(page, "c")

    expect(page.locator("a[href$='bad...same']")).to_be_focused()
    press(page, "ArrowDown")
    expect(page.locator("a[href$='bad...near']")).to_be_focused()


@pytest.mark.usefixtures("twins")
def test_the_page_of_a_session_asks_for_no_good_twins(bob):
    with CaptureQueriesContext(connection) as asked:
        bob.get("/p/shop/s/bad")

    assert [query["sql"] for query in asked if 'input_preview" FROM' in query["sql"]] == []


# --- the ruler, and what was viewed ---------------------------------------------------------------


def mark(client, left, right, **fields):
    data = {"left": left, "right": right, "mark": "4-4", "pair": "3", "here": "mode=unified&x=<b>", "viewed": "yes"}
    return client.post(reverse("diff_viewed", args=["shop"]), data | fields)


def test_the_ruler_leads_to_each_change(shop, bob):
    load_record(shop, run_id="a", steps=[tool_step("first"), tool_step("gone"), tool_step("last")])
    load_record(shop, run_id="b", session_id="s2", steps=[tool_step("first"), tool_step("last"), tool_step("new")])

    ruler = " ".join(match(r'<svg class="diff-ruler"(.*?)</svg>', diff_of(bob, "a", "b")).split())

    assert 'href="?at=0#p1" tabindex="-1" class="mark-only_left"' in ruler
    assert 'href="?at=0#p3" tabindex="-1" class="mark-only_right"' in ruler
    assert 'class="diff-ruler"' not in diff_of(bob, "a", "a")


def test_the_ruler_of_a_long_diff_leads_to_other_pages(shop, bob):
    load_record(shop, run_id="a", steps=[tool_step(arguments={"i": i}) for i in range(700)])
    load_record(shop, run_id="b", session_id="s2", steps=[tool_step(arguments={"i": -i - 1}) for i in range(700)])

    ruler = match(r'<svg class="diff-ruler"(.*?)</svg>', diff_of(bob, "a", "b"))

    assert "at=60#p" in ruler
    assert ruler.count("<a ") <= 250


def test_a_viewed_mark_is_kept_and_counted_and_taken_back(pair, bob):
    assert "of 1 viewed" not in diff_of(bob, "a", "b")

    response = mark(bob, "a", "b")

    assert response["Location"] == reverse("diff", args=["shop", "a", "b"]) + "?mode=unified&x=%3Cb%3E#p3"
    page = diff_of(bob, "a", "b")
    assert "1 of 1 viewed" in page
    assert 'aria-pressed="true"' in page
    assert "1 of 1 viewed" in diff_of(bob, "b", "a")
    mark(bob, "a", "b", viewed="no")
    assert "of 1 viewed" not in diff_of(bob, "a", "b")


def test_a_viewed_mark_is_of_one_person(shop, pair, bob):
    mark(bob, "a", "b")

    assert "of 1 viewed" not in diff_of(client_of(make_user("ann", shop)), "a", "b")


@pytest.mark.parametrize("fields", [{"left": "none"}, {"mark": ""}, {"mark": "-"}, {"mark": "x-1"}, {"mark": "1" * 40}])
def test_marks_of_nothing_are_refused(pair, bob, fields):
    assert mark(bob, **({"left": "a", "right": "b"} | fields)).status_code == 404


def test_others_mark_nothing(pair, bob):
    assert mark(client_of(make_user("charlie", make_project("elsewhere"))), "a", "b").status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_key_e_marks_what_is_read_and_the_page_is_accessible(page, live_server, pair, shop, scheme):
    make_user("bob", shop)
    page.emulate_media(color_scheme=scheme)
    arrive(page, f"{live_server.url}/p/shop/diff/a...b")

    press(page, "e")
    expect(page.locator(".viewed-count")).to_have_text("1 of 1 viewed")

    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{live_server.url}/p/shop/diff/a...b")
        violations = Axe().run(page).response["violations"]
        assert (width, [(each["id"], each["nodes"][0]["html"]) for each in violations]) == (width, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_text_among_the_facts_is_folded(shop, bob):
    for name, word in {"a": "truck", "b": "lorry"}.items():
        text = " ".join(f"On day {day} nobody knew which {word} it was on." for day in range(40))
        load_record(shop, run_id=name, session_id=name, input=text, steps=[tool_step()])

    facts = match(r'<section class="facts-diff"(.*?)</section>', diff_of(bob, "a", "b"))

    assert "characters, different in 40 places" in facts


def answered(shop, **answers: str) -> None:
    for run_id, answer in answers.items():
        steps = [{"kind": "tool", "tool_name": "look", "arguments": {}, "result": answer}]
        load_record(shop, run_id=run_id, session_id=run_id, steps=steps)


@pytest.mark.usefixtures("bob")
def test_on_a_phone_the_finding_stands_before_the_buttons_which_are_one_row(page, shop, live_server):
    answered(shop, a="yes", b="no")
    page.set_viewport_size({"width": 320, "height": 700})

    arrive(page, f"{live_server.url}/p/shop/diff/a...b")

    def tops(selector: str) -> list[int]:
        boxes = [each.bounding_box() for each in page.locator(selector).all() if each.is_visible()]
        return [round(box["y"] + box["height"] / 2) for box in boxes]

    buttons = tops(".head-next .btn")
    assert (len(buttons), len(set(buttons)), len(set(tops(".run-side > a")))) == (4, 1, 1)
    assert tops(".story")[0] < buttons[0]
    page.click(".head-next summary")
    expect(page.locator(".head-next").get_by_text("Only changes")).to_be_visible()
    expect(page.locator(".head-next .side-by-side")).to_be_hidden()


@pytest.mark.usefixtures("bob")
def test_a_printed_diff_has_no_controls_and_opens_what_is_folded(page, shop, live_server):
    answered(shop, a="yes", b="no")
    arrive(page, f"{live_server.url}/p/shop/diff/a...b")

    page.emulate_media(media="print")

    for control in (".btn", "kbd", ".diff-ruler", ".no-print"):
        assert not [each for each in page.locator(control).all() if each.is_visible()], control
    expect(page.locator(".print-only")).to_contain_text("/p/shop/diff/a...b")
    expect(page.locator(".same-facts dl").first).to_be_visible()


def test_runs_that_share_no_tool_lead_with_their_questions_and_places_in_order(shop, bob):
    for run_id, said, name in (("a", "Reindex all shards.", "reindex"), ("b", "Roll out build 91.", "rollout")):
        load_record(shop, run_id=run_id, session_id=run_id, input=said, output=said, steps=[tool_step(name)])

    page = diff_of(bob, "a", "b")

    assert lead_of(page).startswith("The questions differ: &quot;Reindex all shards.&quot;")
    assert page.count('<p class="divergence-next">Step 1: A calls reindex') == 1


def test_an_answer_that_is_the_first_difference_is_told_once(shop, bob):
    for run_id, said in (("a", "Yes."), ("b", "No.")):
        answer = {"kind": "response", "parts": [{"part_kind": "text", "content": said}]}
        load_record(shop, run_id=run_id, session_id=run_id, output=said, steps=[model_step(1, response=answer)])

    page = diff_of(bob, "a", "b")

    assert "text of the answer" in lead_of(page)
    assert "The final answers differ" not in page
