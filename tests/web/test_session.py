"""The page of a session: what it says of a run, its steps, its messages, and the document itself."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from sessions_app.models import Replay, Run
from sessions_app.services.cold_cases import mark_cold
from sessions_app.web.render.indented import indented
from tests.losing import lose_payloads
from tests.web.making import HOSTILE, client_of, make_project, make_user, match
from tests.web.records import load_example, load_record, long_run, loop_of, model_step, tool_step

pytestmark = pytest.mark.django_db


def page_of(client, row, /, **query):
    response = client.get(reverse("session", args=["shop", row.session.session_id]), query)
    assert response.status_code == 200
    return response.content.decode()


def test_items_of_the_menu_begin_with_a_capital_and_say_whether_they_copy_or_download(shop, bob):
    page = page_of(bob, load_example(shop, "r_8821"))

    menu = page.partition("menu-actions")[2].partition("Replay with options")[0]
    items = [item.strip() for item in re.findall(r"</svg> ([^<]+)<(?:/a|/button|kbd|/summary)", menu)]
    assert {"Copy link to this view", "Copy run id", "Download OTLP JSON"} <= set(items)
    assert [item for item in items if not item[0].isupper()] == []


def test_the_list_begins_a_little_before_the_step_that_is_open(shop, bob):
    """Not where somebody asked for a step, or for those before it."""
    steps = [tool_step(f"t{number}") for number in range(1, 31)]
    steps[19] |= {"error": {"type": "Deadlock", "message": "blocked"}}
    run = load_record(shop, steps=steps)

    pages = [page_of(bob, run, **query) for query in ({}, {"step": 20}, {"at": 3})]

    assert [rows_of(page)[0] for page in pages] == ["16", "1", "1"]
    assert "steps before 16: </span>15 before</a>" in pages[0]


def rows_of(page):
    return re.findall(r'<tr id="s(\d+)"', page)


def test_all_steps_are_listed_to_be_printed_and_not_on_every_visit(shop, bob):
    steps = [tool_step(f"t{number}") for number in range(1, 31)]
    steps[19] |= {"error": {"type": "Deadlock", "message": "blocked"}}
    run = load_record(shop, steps=steps)

    seen, printed = page_of(bob, run), page_of(bob, run, print=1)

    assert rows_of(printed) == [str(n) for n in range(1, 31)]
    assert rows_of(seen) == [str(n) for n in range(16, 31)]
    assert 'print-only">Steps 16 to 30 of 30</p>' in seen
    assert "step=20&amp;print=1" in seen


def test_a_long_run_says_which_of_its_steps_are_printed(shop, bob):
    run = load_record(shop, steps=long_run(450))

    assert "Steps 201 to 400 of 450</p>" in page_of(bob, run, step=300)
    assert 'print-only">Steps' not in page_of(
        bob, load_record(shop, run_id="short", session_id="short", steps=[tool_step()])
    )


def test_a_model_step_without_a_name_goes_by_its_model_and_messages_are_counted(shop, bob):
    """Also where no final history was recorded."""
    page = page_of(bob, load_record(shop, steps=[model_step(name="model", model="gpt-4o")]))

    assert '<span class="recorded cut">gpt-4o</span>' in page
    assert 'view=messages&amp;step=1">2</a>' in page


def test_a_session_of_many_runs_opens_the_first_that_went_wrong(shop, bob):
    failing = {"error": {"type": "E", "message": "m"}, "status": "error"}
    for name, more in (("one", {}), ("two", failing), ("three", failing)):
        run = load_record(shop, run_id=name, session_id="chat", steps=[model_step()], **more)

    assert page_of(bob, run).count('title="two"') == 1
    assert 'aria-current="true"\n' in page_of(bob, run).split('title="two"')[0][-80:]


def test_the_page_says_what_happened_and_whether_it_can_be_replayed(shop, bob):
    run = load_example(shop, "r_8821")

    page = page_of(bob, run)

    story = " ".join(re.sub(r"<[^>]*>", "", match(r'<p class="story">(.*?)</p>', page)).split())
    assert story == "step 3 lookup_order was called without user_id 3 steps · 1 tool call · answered"
    assert "replayable" in match(r'<h2 id="kit-title"[^>]*>(.*?)</h2>', page)
    assert page.count('<li class="kit-') == 12
    assert "lookup_order was called without user_id" in page
    assert "Recorded answers only" in page
    assert "isolated" not in page
    assert "Next time:" in page


def test_the_line_of_the_kit_names_what_is_not_captured_and_says_how_much_more(shop, bob):
    """However narrow the page is; of a run that can be replayed it is no news."""
    run = load_example(shop, "r_8821")
    whole = match(r'<details class="kit-fold">\s*<summary class="small">(.*?)</summary>', page_of(bob, run))
    Run.objects.update(verdict="cold")
    open_lines = [line["title"] for line in run.kit["lines"] if line["status"] != "captured"]

    line = match(r'<details class="kit-fold">\s*<summary class="small">(.*?)</summary>', page_of(bob, run))

    assert sum(escape(title) in line for title in open_lines) == 1
    assert f"+{len(open_lines) - 1} more" in line
    assert sum(escape(title) in whole for title in open_lines) == 0


def test_what_reproduced_the_run_stands_before_newer_forks(shop, bob):
    run = load_example(shop, "r_8821")
    made = {"project": shop, "run": run, "content": run.content, "state": "done"}
    Replay.objects.create(**made, replay_id="rp_first", number=1, mode="recording", verdict="reproduced")
    Replay.objects.create(
        **made, replay_id="rp_fork", number=2, mode="fork", verdict="reproduced", order={"at_step": 2}
    )

    page = page_of(bob, run)

    assert page.index("rp_first") < page.index("1 more") < page.index("rp_fork")


def test_rows_tell_calls_without_the_frame_of_their_json(shop, bob):
    call = {
        "part_kind": "tool-call",
        "tool_name": "cancel_order",
        "args": {"order_id": "ORD-5512"},
        "tool_call_id": "c",
    }
    model = model_step(response={"kind": "response", "parts": [call]})
    asked = tool_step("cancel_order", arguments={"order_id": "ORD-5512", "reason": "mistake"})
    run = load_record(shop, steps=[model, tool_step("lookup", arguments={"order_id": "ORD-5521"}), asked])

    rows = match(r"<tbody>(.*?)</tbody>", page_of(bob, run))

    assert "→ cancel_order ORD-5512<" in rows
    assert '<span class="recorded cut"><span class="key-of">order_id</span> ORD-5521</span>' in rows
    assert '<span class="key-of">order_id</span> ORD-5512 <span class="key-of">reason</span> mistake' in rows


def test_replay_is_not_the_next_thing_to_do_with_a_run_that_is_marked_cold(shop, bob):
    run = load_example(shop, "r_8821")
    mark_cold(run=run, reason="The index is gone.")

    button = match(r'<button class="(btn[^"]*)"[^>]*data-key="Shift\+R"', page_of(bob, run))

    assert button == "btn"


def test_a_cold_run_says_why_and_has_no_replay_button(shop, bob):
    run = load_record(shop)

    page = page_of(bob, run)

    assert "Cannot be replayed" in page
    assert "Only the final output was saved" in page
    assert "No steps were recorded." in page
    assert 'data-key="Shift+R"' not in page


def test_what_was_not_captured_is_said(shop, bob):
    page = page_of(bob, load_record(shop, steps=[tool_step(result=None) | {"name": "t"}]))

    commit = match(r"<dt>commit</dt>(.*?)</dd>", page)
    assert '<em class="missing">not captured</em>' in commit


def test_a_step_without_arguments_is_no_word_of_python(shop, bob):
    steps = [{"kind": "other", "name": "build"}, {"kind": "tool", "name": "ask", "tool_name": "ask"}]
    page = page_of(bob, load_record(shop, steps=steps))

    assert ">None<" not in page
    assert page.count('<span class="recorded cut"><em class="missing">not captured</em></span>') == 2


def test_a_failed_step_stands_out_in_the_story_and_the_answer_above_the_kit(shop, bob):
    failed = tool_step(result=None, error={"type": "IOError", "message": "gone"})
    run = load_record(shop, steps=[model_step(1), failed, model_step(2)], input="Where is it?", output="?")

    page = page_of(bob, run)

    assert '<strong class="wrong">step 2 failed</strong>' in page
    assert page.index('class="ends"') < page.index('id="kit-title"')


def test_the_story_of_a_run_in_which_nothing_is_odd_says_where_its_answer_comes_from(shop, bob):
    found = tool_step(result={"order": "ORD-77", "total": 12.5})
    run = load_record(
        shop, steps=[model_step(1), found, model_step(2)], input="Where?", output="ORD-77, 12.50, 410 EUR"
    )

    page = page_of(bob, run)

    assert "answered · answer from step 2 · in no step: 410</span></p>" in page
    assert run.answer_sources == {"steps": [2], "in_no_step": ["410"]}


def test_a_loop_is_visible_at_one_glance(shop, bob):
    page = page_of(bob, load_example(shop, "run_xyz789"))

    assert "× 20" in page
    assert "same empty result" in page
    assert "unfold the other 39 steps" in page
    assert page.count('<tr id="s') == 2


def test_the_step_shown_under_its_loop_is_marked_as_one_of_it(shop, bob):
    run = load_example(shop, "run_xyz789")
    inside, outside = page_of(bob, run, step=2), page_of(bob, run, step=41)

    assert "unfold the other 39 steps" in inside
    assert "in-fold" in match(r'<tr id="s2"(.*?)>', inside)
    assert "in-fold" not in match(r'<tr id="s41"(.*?)>', inside)
    assert "unfold 40 steps" in outside


def test_an_unfolded_loop_shows_each_step(shop, bob):
    page = page_of(bob, load_example(shop, "run_xyz789"), unfold="1")

    assert page.count('<tr id="s') == 41


def test_the_panel_shows_the_first_odd_step_unless_asked(shop, bob):
    run = load_example(shop, "r_8821")

    assert 'data-shown="3"' in page_of(bob, run)
    assert 'data-shown="2"' in page_of(bob, run, step=2)
    assert 'data-shown="5"' in page_of(bob, run, step=99999)
    assert 'data-shown="3"' in page_of(bob, run, step="x; DROP")


def test_the_panel_shows_the_step_that_the_story_names_where_nothing_went_wrong(shop, bob):
    failed = tool_step("save", parent=1, error={"type": "Timeout", "message": "late"})
    steps = [model_step(1), failed, tool_step("save", parent=1, result="saved")]
    run = load_record(shop, run_id="healed", session_id="healed", steps=steps)

    assert 'data-shown="2"' in page_of(bob, run)


def test_a_long_run_opens_at_once_at_the_step_asked_for(shop, bob):
    run = load_record(shop, steps=[step | {"name": f"t{at}"} for at, step in enumerate(long_run(1000))])

    page = page_of(bob, run, step=750)

    assert "Steps 601 to 800 of 1000" in page
    assert page.count('<tr id="s') == 200
    assert 'class="ruler"' in page
    assert len(page) < 300 * 1024


def test_many_calls_of_one_tool_fold_but_for_the_one_that_failed(shop, bob):
    run = load_record(shop, steps=long_run(100))

    page = page_of(bob, run, step=100)

    assert rows_of(page) == ["100"]
    assert '</span><span class="answer">' in match(r'<tr id="s100"(.*?)</tr>', page)
    fold = " ".join(re.sub(r"<[^>]*>", " ", match(r'<tr class="fold"(.*?)</tr>', page)).split())
    assert fold.endswith("row 1 … row 99 unfold 99 steps · different arguments and results –")


def test_the_number_of_queries_does_not_grow_with_the_run(shop, bob):
    short = load_record(shop, run_id="short", session_id="short", steps=loop_of(2))
    long = load_record(shop, run_id="long", session_id="long", steps=loop_of(300))
    page_of(bob, short)

    counts = []
    for run in (short, long):
        with CaptureQueriesContext(connection) as seen:
            page_of(bob, run, step=3)
        counts.append(len(seen))

    assert counts[0] == counts[1]


def test_hostile_text_stays_text(shop, bob):
    run = load_record(
        shop,
        output=HOSTILE,
        agent={"name": HOSTILE[:40]},
        user_id="<b>u</b>",
        status="error",
        error={"type": "<img src=x>", "message": HOSTILE},
        steps=[
            model_step(name="<i>model</i>"),
            tool_step("<i>tool</i>", parent=1, error={"type": "E", "message": HOSTILE}, result=None),
        ],
    )

    for view in ("steps", "timeline", "messages", "raw"):
        page = page_of(bob, run, view=view)
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "<i>tool" not in page
        assert "\u202e" not in page
        assert "&amp;lt;" not in page
        assert " style=" not in page
        assert "{{ 7|add:7 }}" in page or view == "messages"


def test_any_session_id_has_an_address(shop, bob):
    run = load_record(shop, session_id="a/../b c?%2e#é..", run_id="x...y/&<", steps=[tool_step()])

    page = page_of(bob, run)

    assert "a/../b c?%2e#é.." in page


def test_several_runs_have_a_switcher(shop, bob):
    load_record(shop, run_id="one", session_id="chat", steps=[tool_step("first")])
    second = load_record(shop, run_id="two", session_id="chat", steps=[tool_step("second")])

    assert "second" in page_of(bob, second, run="two")
    assert "second" in page_of(bob, second, run="2")
    page = page_of(bob, second)
    assert "2 runs" in page
    assert '<span class="recorded cut">first</span>' in page
    address = reverse("session", args=["shop", "chat"])
    assert bob.get(address, {"run": "three"}).status_code == 404
    assert bob.get(address, {"run": "3"}).status_code == 404


def test_replays_of_the_run_are_listed(shop, bob):
    run = load_example(shop, "r_8821")
    replay = Replay.objects.create(
        project=shop, run=run, content=run.content, number=1, state="done", verdict="diverged", divergence={"step": 3}
    )

    page = page_of(bob, run)

    assert reverse("replay", args=["shop", replay.replay_id]) in page
    assert "at step 3" in page


# --- messages ------------------------------------------------------------------------------------


def converse(shop, turns, session_id="talk"):
    """Runs of one session, each a turn."""
    told = [
        {"run_id": f"{session_id}_{i}", "session_id": session_id, "input": f"question {i}?", "output": f"reply {i}!"}
        for i in range(1, turns + 1)
    ]
    return [load_record(shop, steps=[model_step(), tool_step()], **fields) for fields in told]


def test_messages_open_at_the_whole_conversation_with_the_final_answer(shop, bob):
    run, *_ = converse(shop, 3)

    page = page_of(bob, run, view="messages")

    said = re.findall(r'<div class="recorded said"\s+dir="auto">(.*?)</div>', page)
    assert said == ["question 1?", "reply 1!", "question 2?", "reply 2!", "question 3?", "reply 3!"]
    assert page.count(">1 model call</span>") == 3
    assert "new in this request" not in page


@pytest.mark.parametrize(("rejected", "is_marked"), [(500, True), (0, False)])
def test_a_step_whose_answer_tells_of_a_failure_is_marked_and_counted_as_the_story_says(shop, bob, rejected, is_marked):
    sent = tool_step("send_batch", result={"accepted": 0, "rejected": rejected})
    run = load_record(shop, steps=[model_step(1), sent, model_step(2)], input="Send it.", output="It is sent.")
    page, listed = page_of(bob, run), bob.get(reverse("sessions", args=["shop"])).content.decode()

    assert ("step 2 failed" in page) == is_marked
    assert (re.search(r'<tr id="s2"\s+class="[^"]*\bfailed\b', page) is not None) == is_marked
    assert (re.search(r'<tr id="s1"\s+class="[^"]*\bfailed\b', page) is not None) is False
    assert ('aria-label="3 steps, 1 failed"' in listed) == is_marked


def test_a_conversation_names_the_tools_and_each_failed_step_between_question_and_answer(shop, bob):
    steps = [model_step(1), *(tool_step("migrate") for _ in range(6))]
    for step in steps[2:]:
        step |= {"error": {"type": "Deadlock", "message": "blocked"}}

    page = page_of(bob, load_record(shop, steps=steps), view="messages")
    work = match(r'<div class="turn-work">(.*?)</div>', page)

    assert '<span class="recorded">migrate</span> <span class="soft">× 6</span>' in work
    assert re.findall(r'view=steps&amp;step=(\d)"', work) == ["3", "4", "5"]
    assert "Deadlock: blocked" in work
    assert "2 more steps failed" in work


def test_the_tab_of_the_conversation_counts_the_runs_that_it_shows(shop, bob):
    run, *_ = converse(shop, 3)

    tab = r'data-key="3"[^>]*>Conversation(.*?)</a>'
    assert "3</span>" in match(tab, page_of(bob, run))
    assert match(tab, page_of(bob, load_record(shop, run_id="alone", session_id="alone", steps=[model_step(1)]))) == ""


def test_a_long_conversation_is_read_from_its_end(shop, bob):
    run, *_ = converse(shop, 31)

    page, earlier = page_of(bob, run, view="messages"), page_of(bob, run, view="messages", turns=1)

    first, last = "question 1?</div>", "reply 31!</div>"
    assert (first in page, last in page, "earlier 1 of 1 runs" in page) == (False, True, True)
    assert (first in earlier, last in earlier, "later runs (30)" in earlier) == (True, False, True)


def test_a_conversation_takes_as_many_queries_however_many_runs_it_has(shop, bob):
    counts = []
    for turns, name in ((2, "brief"), (2, "short"), (9, "long")):
        run = converse(shop, turns, name)[0]
        with CaptureQueriesContext(connection) as seen:
            page_of(bob, run, view="messages")
        counts.append(len(seen))

    assert counts[1] == counts[2]


def test_what_a_sub_agent_was_asked_stands_below_and_its_run_opens_second(shop, bob):
    """Control: a run that names a parent elsewhere is a turn like any other, and opens first."""
    made = {"session_id": "team", "steps": [model_step()]}
    helper = load_record(shop, run_id="helper", parent={"run_id": "boss", "step": 1}, **made)
    load_record(shop, run_id="boss", **made)
    alone = load_record(shop, run_id="alone", session_id="other", parent={"run_id": "gone", "step": 1})

    page, other = page_of(bob, helper, view="messages"), page_of(bob, alone, view="messages")
    opened = bob.get(reverse("session", args=["shop", "team"]))

    assert re.findall(r'aria-label="Run (\d)"', page) == ["1", "2"]
    assert (page.count("asked a sub-agent"), other.count("asked a sub-agent")) == (1, 0)
    assert opened.context["run"].run_id == "boss"


def test_what_a_model_answered_takes_the_room_of_arguments_that_it_does_not_have(shop, bob):
    page = page_of(bob, load_record(shop, steps=[model_step(), tool_step("ask")]))

    heads = [" ".join(each.split()) for each in re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page, re.DOTALL)]
    cells = re.findall(r"<td.*?</td>", match(r'(<tr id="s1".*?</tr>)', page), re.DOTALL)
    assert "answer 1" in cells[heads.index("asked")]
    assert 'colspan="2"' in cells[heads.index("asked")]
    assert len(cells) == len(heads) - 1
    assert "not captured" not in page.partition("<tbody>")[2].partition("</tbody>")[0]


def test_a_sub_agent_is_a_link_in_the_row_of_the_step_that_called_it(shop, bob):
    made = {"session_id": "team", "agent": {"name": "billing"}}
    called = load_record(shop, run_id="helper", parent={"run_id": "boss", "step": 2}, steps=[model_step()], **made)
    load_record(shop, run_id="lost", parent={"run_id": "boss"}, steps=[model_step()], **made)
    boss = load_record(shop, run_id="boss", session_id="team", steps=[model_step(), tool_step("ask")])

    page = page_of(bob, boss)
    helper = page_of(bob, called, run="helper")

    assert rows_of(page) == ["1", "2"]
    link = match(r'<a class="badge called"\s+href="\?run=helper">(.*?)</a>', match(r'(<tr id="s2".*?</tr>)', page))
    assert " ".join(re.sub(r"<[^>]*>", " ", link).split()) == "billing 1 step of the sub-agent billing"
    assert page.count('href="?run=helper">') == page.count('<a href="?run=lost">') == 1
    assert 'href="?run=boss&amp;step=2">called by step 2 of ' in helper
    assert "called by" not in page


def test_messages_are_those_of_the_request_with_new_ones_marked(shop, bob):
    run = load_record(shop, steps=[model_step(1), model_step(2, after=1)])

    page = page_of(bob, run, view="messages", step=2)

    assert "question 1" in page
    assert "question 2" in page
    assert "answer 2" not in page
    assert page.count("new in this request") == 2
    assert "3 messages, 2 new since the request at step 1" in page


def test_a_history_that_was_rewritten_says_so(shop, bob):
    changed = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "something else"}]}]
    run = load_record(shop, steps=[model_step(1), model_step(2, request={"messages": changed})])

    assert "1 message of the previous request changed or gone" in page_of(bob, run, view="messages", step=2)
    assert "does not continue from the previous request" in page_of(bob, run, step=2)


def test_a_long_history_is_read_from_its_end(shop, bob):
    steps = [model_step(i, after=None if i == 1 else i - 1) for i in range(1, 41)]
    run = load_record(shop, steps=steps)

    page = page_of(bob, run, view="messages", step=40)
    earlier = page_of(bob, run, view="messages", step=40, until=49)

    assert "question 40" in page
    assert "question 1<" not in page
    assert "earlier 30 of 49 messages" in page
    assert "question 11<" in earlier


def test_the_system_prompt_stands_once_on_top(shop, bob):
    page = page_of(bob, load_example(shop, "r_8821"), view="messages", step=4)

    assert "System prompt" in page
    assert "instructions of this request" not in page


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_system_prompt_within_the_first_message_was_captured(shop, bob, is_sent):
    parts = [{"part_kind": "system-prompt", "content": "Be brief."}] if is_sent else []
    first = {"kind": "request", "parts": [*parts, {"part_kind": "user-prompt", "content": "Where is it?"}]}
    run = load_record(shop, steps=[model_step(1, request={"messages": [first]}), model_step(2, after=1)])

    page = page_of(bob, run, view="messages", step=2)

    assert ("the system prompt of this request" in page) is not is_sent


# --- as it arrived -------------------------------------------------------------------------------


def test_raw_shows_the_document_in_parts(shop, bob):
    run = load_record(shop, input="x" * 100_000)

    page = page_of(bob, run, view="raw", **{"as": "indented"})

    assert "next 64 KiB" in page
    assert "bytes 0–65536" in page
    assert "from the beginning" in page_of(bob, run, view="raw", **{"from": 65536})


def test_raw_opens_as_a_tree_that_folds_and_leads_to_the_search_of_the_session(shop, bob):
    page = page_of(bob, load_record(shop, steps=[tool_step()]), view="raw")

    assert '<ul class="tree">' in page
    assert 'data-copy="steps[0].tool_name"' in page
    assert 'name="find"' in page
    assert "<strong>tree</strong>" in page


def test_raw_indents_json_as_it_was_spelled_and_shows_it_as_sent_too(shop, bob):
    run = load_record(shop, steps=[tool_step()])

    page, sent = (page_of(bob, run, view="raw", **{"as": form}) for form in ("indented", "sent"))

    assert re.search(r"\{\n  &quot;format&quot;: ", page)
    assert 'data-copy-from="#raw-text"' in page
    assert "\n  &quot;" not in sent


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '{"a":1.50e2,"a":[],"b":[{"c":"x,\\"{"},2]}',
            """{
  "a": 1.50e2,
  "a": [],
  "b": [
    {
      "c": "x,\\"{"
    },
    2
  ]
}""",
        ),
        (" [ ] ", "[]"),
        ('"one"', '"one"'),
    ],
)
def test_json_is_indented_without_being_spelled_anew(text, shown):
    assert indented(text) == shown


def test_a_document_that_is_gone_leaves_the_page_standing(shop, bob):
    run = load_record(shop, steps=[tool_step()])
    lose_payloads(shop)

    assert "no longer stored" in page_of(bob, run, view="raw")
    assert "no longer stored" in page_of(bob, run)


def test_the_native_record_comes_as_a_file_and_can_be_posted_elsewhere(shop, bob):
    run = load_example(shop, "cancel_bug")

    response = bob.get(reverse("record", args=["shop", run.session.session_id]), {"run": run.run_id})

    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"] == 'attachment; filename="cancel_5521.json"'
    other = make_project("other")
    from sessions_app.services.ingest import ingest_document

    copy = ingest_document(other, response.content).run
    assert bytes(copy.content_digest) == bytes(run.content_digest)


# --- who may see it ------------------------------------------------------------------------------


def test_others_see_nothing(shop, bob):
    run = load_example(shop, "r_8821")
    charlie = client_of(make_user("charlie", make_project("elsewhere")))

    for address in (
        reverse("session", args=["shop", run.session.session_id]),
        reverse("record", args=["shop", run.session.session_id]),
        reverse("step", args=["shop", run.session.session_id, 1]),
        reverse("payload", args=["shop", run.document]),
        reverse("diff", args=["shop", "r_8821", "r_8821"]),
        reverse("replays", args=["shop"]),
    ):
        assert charlie.get(address).status_code == 404


def test_a_payload_of_another_project_is_not_found_here(shop, bob):
    run = load_example(shop, "r_8821")
    mine = make_project("mine")
    dora = client_of(make_user("dora", mine))

    assert dora.get(reverse("payload", args=["mine", run.document])).status_code == 404


def test_a_viewer_has_no_buttons_that_change_things(shop):
    run = load_example(shop, "r_8821")
    viewer = client_of(make_user("vera", shop, role="viewer"))

    page = page_of(viewer, run)

    assert "Mark cold" not in page
    assert 'data-key="Shift+R"' not in page
    assert "Fork from" not in page


@pytest.mark.parametrize(("status", "label"), [("ok", "answered"), ("cut_off", "output"), ("error", "output")])
def test_only_a_run_that_ended_well_is_said_to_have_answered(shop, bob, status, label):
    page = page_of(bob, load_record(shop, status=status, output="It is on its way.", steps=[tool_step()]))

    labels = re.findall(r"<dt>(.*?)</dt>", match(r'<dl class="ends">(.*?)</dl>', page))
    assert labels[:2] == ["asked", label]
    assert ("· answered" in match(r'<p class="story">(.*?)</p>', page)) is (label == "answered")


def test_tokens_are_told_in_thousands(shop, bob):
    run = load_record(shop, steps=[model_step(input_tokens=7500, output_tokens=40)])

    assert '<td class="num">7,500 / 40</td>' in page_of(bob, run)


def test_the_conversation_has_its_word_in_the_address_too(shop, bob):
    run = load_record(shop, steps=[model_step()])

    assert 'class="turn"' in page_of(bob, run, view="conversation")


def conversation_of(client, row):
    return page_of(client, row, view="messages").partition('class="messages"')[2]


def test_the_conversation_tells_calls_in_their_order_a_refused_one_with_what_it_answered(shop, bob):
    refused = tool_step("charge_card", result={"status": "declined", "reason": "insufficient funds"})
    steps = [tool_step("find", result={"n": 1}), refused, tool_step("log", result={"ok": True})]
    run = load_record(shop, steps=steps, output="Paid.")

    calls = re.findall(r'<p class="turn-call(.*?)</p>', conversation_of(bob, run), re.DOTALL)
    words = [" ".join(re.sub(r"<[^>]*>", " ", call.partition(">")[2]).split()) for call in calls]

    assert words == [
        "step 1 find → n 1",
        "failed: step 2 charge_card → status declined reason insufficient funds",
        "step 3 log → ok true",
    ]
    assert "turn-failed" in calls[1]


def test_what_is_wrong_about_an_answer_stands_below_it(shop, bob):
    refused = tool_step("charge_card", result={"status": "declined", "reason": "insufficient funds"})
    run = load_record(shop, steps=[refused], output="Paid.")

    answer = conversation_of(bob, run).rpartition('class="message message-model"')[2]

    assert answer.index("Paid.") < answer.index("turn-warning") < answer.index("does not say so")


def test_sub_agents_stand_below_the_call_that_asked_them_and_not_behind_the_answer(shop, bob):
    """Also where they say which step inside that call they ran in."""
    made = {"session_id": "team", "steps": [model_step()]}
    inside = {"kind": "agent", "name": "rooms", "parent": 1}
    load_record(shop, run_id="rooms", parent={"run_id": "boss", "step": 2}, output="r1", **made)
    load_record(shop, run_id="lost", parent={"run_id": "boss"}, output="somewhere", **made)
    steps = [tool_step("delegate", result="r1 it is"), inside, tool_step("other", result="nothing")]
    boss = load_record(shop, run_id="boss", session_id="team", steps=steps, output="Room r1.")

    thread = conversation_of(bob, boss)

    places = [thread.index(words) for words in ("delegate", "asked a sub-agent", ">r1<", "other", "Room r1.")]
    assert places == sorted(places)
    assert thread.index("somewhere") < thread.index("Room r1.")


def test_runs_that_say_to_have_called_each_other_are_all_there(shop, bob):
    for one, other in (("a", "b"), ("b", "a")):
        run = load_record(shop, run_id=one, session_id="loop", parent={"run_id": other}, output=f"said by {one}")

    thread = conversation_of(bob, run)

    assert [thread.count(f"said by {name}") for name in "ab"] == [1, 1]
