"""The pages of goldens: keeping one by ticks, trying it first, running it, all at once, and who may."""

import html
import io
import json
import re
import zipfile

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.models import Golden, GoldenBatch, GoldenRun, Replay, Run
from sessions_app.services.goldens import create_golden
from tests.web.making import client_of, make_user, match
from tests.web.records import load_example, load_record, model_step, tool_step

pytestmark = pytest.mark.django_db
ORDERS = [{"order": "#4421", "user_id": "u_2"}, {"order": "#4398", "user_id": "u_1"}]
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def agents(settings):
    settings.REPLAY_AGENTS = {"old": "shop:old", "new": "shop:new"}


@pytest.fixture
def bad(shop):
    return run_of(shop, "bad", "Order #4421 is shipped.")


def run_of(project, run_id, output, **fields):
    step = tool_step(tool_name="find", arguments={"q": "mine"}, result=ORDERS)
    return load_record(project, run_id=run_id, session_id="chat", user_id="u_1", output=output, steps=[step], **fields)


def form_of(run):
    return f"{reverse('new_golden', args=['shop', run.session.session_id])}?run={run.run_id}"


def ticks(client, run, *words, **values):
    """The names and values of the proposals with these words, as a browser would send them."""
    rows = client.get(form_of(run)).context["rows"]
    sent = {"check": []}
    for row in rows:
        sent[f"value_{row.number}"] = row.typed
        if row.proposal.words in words:
            sent["check"].append(str(row.number))
            sent[f"value_{row.number}"] = values.get(row.proposal.member, row.typed)
    return sent


def post(client, run, **fields):
    plain = {"name": "Own orders", "mode": "code", "on_difference": "play_on", **fields}
    return client.post(form_of(run), plain)


# --- keeping -----------------------------------------------------------------------------------


def test_the_form_proposes_what_the_run_did(bob, bad):
    page = bob.get(form_of(bad))

    words = [row.proposal.words for row in page.context["rows"]]
    assert words == [
        "find is called with user_id",
        "the answer contains",
        "steps until the end, at most",
        "calls of find, at most",
        "find is called with q",
        "an answer of find contains",
        "no tool that changes something is called",
        "no value of another user is revealed",
    ]
    answered = page.context["rows"][5].typed
    typed = ["u_1", "Order #4421 is shipped.", "1", "1", "mine", answered, "", ""]
    assert [row.typed for row in page.context["rows"]] == typed
    ticked = [row.proposal.words for row in page.context["rows"] if row.is_ticked]
    assert ticked == ["find is called with user_id", "no value of another user is revealed"], (
        "what it shows to be wrong"
    )
    assert answered == json.dumps(json.loads(answered)), "as it was recorded, not as Python spells it"


def test_beside_each_check_stands_what_the_run_gives_ticked_or_not(bob, bad):
    page = bob.get(form_of(bad)).content.decode()
    part = bob.post(
        form_of(bad), {"value_1": "Order #4398", "value_3": "0", "try": "1"}, headers={"hx-request": "true"}
    )

    def outcome_in(text, number):
        cell = text.partition(f'id="judged-{number}"')[2].partition(f'id="judged-{number + 1}"')[0]
        return next((word for word in ("passed", "failed") if word in cell), "")

    assert [outcome_in(page, number) for number in (1, 3)] == ["passed", "passed"]
    assert [outcome_in(part.content.decode(), number) for number in (1, 3)] == ["failed", "failed"]
    assert 'id="judged-1" hx-swap-oob="true"' in " ".join(part.content.decode().split())
    assert "failed : it answered “Order #4421 is shipped.”" in words_of(part)


REJECTED = tool_step(tool_name="pay", arguments={"id": "LI-33"}, result={"status": "rejected"})
NOTHING = tool_step(tool_name="search", arguments={"q": "pets"}, result=[])
FAILED = tool_step(tool_name="render", result=None, error={"type": "OutOfMemory", "message": "no memory"})
STRANGER = tool_step(tool_name="charge", arguments={"guest_id": "g_214"}, result={"status": "posted"})


@pytest.mark.parametrize(
    ("steps", "output", "fields", "ticked", "typed"),
    [
        ([REJECTED], "Invoice LI-33 has been paid.", {}, "the answer does not contain", "has been paid"),
        ([NOTHING], "Yes, 2 dogs may stay. Ask us.", {}, "the answer does not contain", "Yes, 2 dogs may stay."),
        ([NOTHING] * 3, "Nothing was found.", {}, "calls of search, at most", "1"),
        ([FAILED], None, {"error": {"type": "OutOfMemory", "message": "no memory"}}, "the run gives an answer", ""),
    ],
)
def test_a_run_that_went_wrong_proposes_what_may_not_happen_again(bob, shop, steps, output, fields, ticked, typed):
    run = load_record(shop, run_id="wrong", session_id="chat", output=output, steps=steps, **fields)

    page = bob.get(form_of(run))

    rows = page.context["rows"]
    assert [(row.proposal.words, row.typed, row.judged.outcome) for row in rows if row.is_ticked] == [
        (ticked, typed, "fail")
    ]
    assert f"This run went wrong: {run.anomalies[0]['message']}" in words_of(page)
    demanded = {row.typed for row in rows if row.proposal.words == "the answer contains"}
    assert demanded == ({output} if ticked.startswith("calls") else {""}), "the wrong answer is not demanded"


def test_an_argument_that_went_wrong_may_not_be_sent_again(bob, shop):
    run = load_record(shop, run_id="wrong", session_id="chat", output="Charged.", steps=[STRANGER])
    run.anomalies = [{"code": "unnamed_id", "message": "charge acted on g_214, which nobody named", "steps": [1]}]
    run.save()

    ticked = [row for row in bob.get(form_of(run)).context["rows"] if row.is_ticked]

    words = "charge is called with guest_id that does not contain"
    assert [(row.proposal.words, row.typed, row.judged.outcome) for row in ticked] == [(words, "g_214", "fail")]


def test_a_golden_that_passes_on_the_run_that_went_wrong_is_warned_of_until_it_fails(bob, shop):
    run = load_record(shop, run_id="wrong", session_id="chat", output="LI-33 has been paid.", steps=[REJECTED])
    warning = "This run went wrong, yet it passes"

    sent = ticks(bob, run, "steps until the end, at most")
    passing = bob.post(form_of(run), {**sent, "try": "1"}, headers={"hx-request": "true"})

    assert warning in words_of(passing)
    assert warning not in words_of(bob.get(form_of(run)))


def test_checks_of_single_calls_are_folded_unless_they_are_ticked(bob, bad):
    page = bob.get(form_of(bad))
    folded = [row.proposal.words for row in page.context["of_calls"]]
    sent = ticks(bob, bad, "find is called with q", "find is called with user_id")

    again = post(bob, bad, **sent, **{"try": "1"})

    assert folded == ["find is called with q", "an answer of find contains"]
    assert [row.proposal.words for row in again.context["of_calls"]] == ["an answer of find contains"]
    assert again.content.decode().count('name="check"') == page.content.decode().count('name="check"') == 8


def test_only_the_first_line_of_an_answer_stands_in_its_field(bob, shop):
    run = run_of(shop, "long", "Two orders:\n#4398 and #4421")
    blank = run_of(shop, "blank", None)

    rows = [row for each in (run, blank) for row in bob.get(form_of(each)).context["rows"]]
    assert [row.typed for row in rows if row.proposal.words == "the answer contains"] == ["Two orders:", ""]


def test_a_form_without_a_tick_says_so_beside_its_button(bob, bad):
    page = post(bob, bad, name="All orders").content.decode()

    assert "Tick at least one check." in page.partition('class="line golden-save"')[2]


def test_what_is_ticked_is_kept(bob, bad):
    sent = ticks(bob, bad, "calls of find, at most", "no value of another user is revealed", n="0")

    answer = post(
        bob, bad, **sent, expected_outcome="Own orders only", more_checks='{"kind": "output", "contains": "x"}'
    )

    golden = Golden.objects.get()
    assert answer.headers["Location"] == reverse("golden", args=["shop", golden.golden_id])
    assert golden.checks == [
        {"kind": "at_most_calls", "tool": "find", "n": 0},
        {"kind": "no_value_of_other_user"},
        {"kind": "output", "contains": "x"},
    ]
    assert (golden.mode, golden.order, golden.fails_on) == ("code", {"on_difference": "play_on"}, ["bad"])
    assert golden.created_by.username == "bob"


def test_trying_keeps_nothing_and_shows_the_relatives_side_by_side(bob, shop, bad):
    run_of(shop, "good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad", "step": 1})

    page = post(bob, bad, **ticks(bob, bad, "no value of another user is revealed"), **{"try": "1"})

    assert page.status_code == 200
    assert [(column.run.run_id, column.outcome) for column in page.context["columns"]] == [
        ("bad", "fail"),
        ("good", "pass"),
    ]
    assert "the answer names #4421, which belongs to u_2" in page.content.decode()
    assert 'value="Own orders"' in page.content.decode()
    assert not Golden.objects.exists()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Tick at least one check."),
        ({"name": "", "more_checks": '{"kind": "no_write"}'}, "This field is required."),
        ({"more_checks": "{"}, "Line 1 is not valid JSON"),
        ({"more_checks": '{"kind": "nothing"}'}, "kind must be one of"),
        ({"more_checks": '{"kind": "no_write"}', "agent": "nobody"}, "is registered on this server"),
        ({"more_checks": '{"kind": "no_write"}', "mode": "live"}, "No live model is connected"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_kept(bob, bad, fields, words):
    page = post(bob, bad, **fields)

    assert page.status_code == 422
    assert words in page.content.decode()
    assert not Golden.objects.exists()


RECORDED = {
    "one": "1",
    "number": 1,
    "broken": 1.0,
    "large": 12345678901234567890,
    "yes": "true",
    "quoted": '"x"',
    "none": None,
    "word": "null",
}
WRITTEN = {"empty": "", "lines": "a\n\tb", "spaced": " a  b ", "object": '{"p": 1}', "plain": "Zoë", "no": False}


@pytest.mark.parametrize("arguments", [RECORDED, WRITTEN])
def test_what_is_ticked_unedited_keeps_the_recorded_json(bob, shop, arguments):
    run = load_record(
        shop, run_id="json", session_id="json", steps=[tool_step(tool_name="find", arguments=arguments, result="ok")]
    )
    sent = ticks(bob, run, *(f"find is called with {name}" for name in arguments))
    shown = {name: typed.replace("\n", "") if isinstance(typed, str) else typed for name, typed in sent.items()}
    post(bob, run, **shown)

    golden = Golden.objects.get()
    kept = {check["path"].removeprefix("/"): check["equals"] for check in golden.checks}
    assert json.dumps(kept) == json.dumps(arguments)


def test_a_value_that_is_none_is_named_at_its_row(bob, bad):
    page = post(bob, bad, **ticks(bob, bad, "calls of find, at most", n="many"))

    [row] = [row for row in page.context["rows"] if row.error]
    assert (row.proposal.words, row.typed, row.error) == (
        "calls of find, at most",
        "many",
        "n must be a whole number from 0 on.",
    )


def test_recorded_text_is_text(bob, shop):
    run = load_record(
        shop, run_id="h", session_id="h", steps=[tool_step(tool_name=HOSTILE, arguments={HOSTILE: HOSTILE})]
    )
    create_golden(run=run, wanted={"name": HOSTILE, "checks": [{"kind": "at_most_calls", "tool": HOSTILE, "n": 0}]})
    golden = Golden.objects.get()

    for address in (
        form_of(run),
        reverse("goldens", args=["shop"]),
        reverse("golden", args=["shop", golden.golden_id]),
    ):
        assert HOSTILE not in bob.get(address).content.decode()


# --- one ---------------------------------------------------------------------------------------


def keep(run, **fields):
    wanted = {"name": "Own orders", "checks": [{"kind": "no_value_of_other_user"}], "replay": {"mode": "code"}}
    return create_golden(run=run, wanted={**wanted, **fields})


def test_a_golden_shows_the_bad_run_beside_the_good_one(bob, shop, bad):
    run_of(shop, "good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad", "step": 1})
    golden = keep(bad)

    page = bob.get(reverse("golden", args=["shop", golden.golden_id]))

    assert [(column.run.run_id, column.outcome) for column in page.context["columns"]] == [
        ("bad", "fail"),
        ("good", "pass"),
    ]
    assert page.context["warnings"] == []
    assert "No known run passes" not in page.content.decode()


def test_a_replay_of_a_known_run_is_no_second_one_and_an_answer_by_hand_is_named(bob, shop, bad):
    fields = {"origin": "fork", "parent": {"run_id": "bad", "step": 1}}
    good, again = (
        run_of(shop, "good", "Order #4398 is shipped.", **fields),
        run_of(shop, "again", "Order #4421 is shipped.", **fields),
    )
    for number, (made, verdict, source) in enumerate(
        [(good, "diverged", "by_hand"), (again, "reproduced", "recorded")], 1
    ):
        facts = {"sources": {source: 1}}
        made_by = {"produced_run": made, "verdict": verdict, "facts": facts, "state": "done"}
        Replay.objects.create(project=shop, run=bad, content=bad.content, number=number, **made_by)
    golden = keep(bad, replay={"mode": "code", "on_difference": "play_on"})
    assert golden.fails_on == ["bad", "again"]

    page, listed = (
        words_of(bob.get(reverse(*address)))
        for address in (("golden", None, ["shop", golden.golden_id]), ("goldens", None, ["shop"]))
    )

    assert "Fails on 1 known run and passes on 1." in page
    assert "replay #1 with an answer written by hand" in page
    assert page.count("written by hand") == 1
    assert "fails on the bad run passes only on an answer written by hand runs your code" in listed
    assert "So far only the recordings differ" in listed


def test_a_warning_stays_on_the_page(bob, bad):
    golden = keep(bad, replay={"mode": "recording"})

    page = bob.get(reverse("golden", args=["shop", golden.golden_id])).content.decode()

    assert "repeats the recording" in page
    assert "No known run passes" in page


def test_a_golden_that_runs_no_code_is_replaced_by_one_that_does(bob, shop, bad):
    old = keep(bad, replay={"mode": "recording"}, description="Told of #4421")
    [link] = {
        html.unescape(match(r'href="([^"]+golden=[^"]+)"', bob.get(reverse(*address)).content.decode()))
        for address in (("golden", None, ["shop", old.golden_id]), ("goldens", None, ["shop"]))
    }

    page = bob.get(link)
    form, rows = page.context["form"], page.context["rows"]
    assert [row.proposal.words for row in rows if row.is_ticked] == ["no value of another user is revealed"]
    assert (form.initial["mode"], form.initial["description"]) == ("code_and_tools", "Told of #4421")
    sent = {name: value for name, value in form.initial.items() if value}
    kept = bob.post(link.partition("?")[0] + page.context["action"], {**sent, "check": ["0"]})

    golden = Golden.objects.get()
    assert kept.headers["Location"] == reverse("golden", args=["shop", golden.golden_id])
    assert (golden.name, golden.mode, golden.checks) == (old.name, "code_and_tools", old.checks)


def test_each_known_run_has_a_column(bob, shop, bad, monkeypatch):
    monkeypatch.setattr("sessions_app.web.goldens.views.KNOWN", 3)
    for name, order in (("worse", "#4421"), ("worst", "#4421"), ("good", "#4398")):
        run_of(shop, name, f"Order {order} is shipped.", origin="fork", parent={"run_id": "bad", "step": 1})
    golden = keep(bad)

    page = bob.get(reverse("golden", args=["shop", golden.golden_id]))

    outcomes = [(column.run.run_id, column.outcome) for column in page.context["columns"]]
    assert outcomes == [("bad", "fail"), ("worst", "fail"), ("good", "pass")]
    assert "Fails on 3 known runs and passes on 1 (1 not shown)." in words_of(page)


def test_what_tells_a_bad_run_from_a_known_good_one_is_ticked_and_tried_at_once(bob, shop, bad):
    good = run_of(shop, "good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad", "step": 1})
    fork = {"mode": "fork", "order": {"at_step": 1, "hypothesis": "Own orders alone"}, "expectation_met": True}
    known = {"project": shop, "run": bad, "content": bad.content, "state": "done", "number": 1}
    Replay.objects.create(**known, **fork, produced_run=good)

    page = bob.get(form_of(bad))
    ticked = [row for row in page.context["rows"] if row.is_ticked]
    sent = {"check": [row.number for row in ticked], **{f"value_{row.number}": row.typed for row in ticked}}
    part = bob.post(form_of(bad), {**sent, "try": "1"}, headers={"hx-request": "true"})

    assert [row.proposal.words for row in ticked] == ["the answer contains", "no value of another user is revealed"]
    for told in (words_of(page), words_of(part)):
        assert "Tried: fails on 1, passes on 1 known run." in told
    assert "<form" not in part.content.decode()
    nothing = bob.post(form_of(bad), {"try": "1"}, headers={"hx-request": "true"})
    assert "Tick a check to see" in words_of(nothing)


@pytest.mark.parametrize(
    ("source", "is_proven"), [("by_hand", False), ("recorded_for_another_request", False), (None, True)]
)
def test_a_fork_whose_outcome_proves_nothing_is_no_correct_run(bob, shop, bad, source, is_proven):
    good = run_of(shop, "good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad", "step": 1})
    fork = {
        "mode": "fork",
        "order": {"at_step": 1},
        "expectation_met": True,
        "facts": {"expectation": {"source": source}},
    }
    known = {"project": shop, "run": bad, "content": bad.content, "state": "done", "number": 1}
    Replay.objects.create(**known, **fork, produced_run=good)

    told = words_of(bob.get(form_of(bad)))

    assert "Tried: fails on 1, passes on 1 known run." in told
    assert ("It tells the bad run from a correct one." in told) is is_proven
    assert ("so it has not been shown to accept a fix" in told) is not is_proven


def test_what_a_run_shows_of_its_golden_is_on_the_page_at_once(bob, bad):
    """On the page that judges it, in the part that was polling, and in the list."""
    pages = {}
    for name, address, headers in (
        ("page", "golden", {}),
        ("part", "golden", {"HX-Request": "true"}),
        ("list", "goldens", {}),
    ):
        golden = keep(bad)
        bob.post(reverse("run_golden", args=["shop", golden.golden_id]), {"agent": "new"})
        good = run_of(golden.project, f"good_{name}", "Order #4398 is shipped.")
        Replay.objects.filter(golden_run__golden=golden).update(state="done", verdict="diverged", produced_run=good)
        names = ["shop"] if address == "goldens" else ["shop", golden.golden_id]
        pages[name] = bob.get(reverse(address, args=names), headers=headers)

    assert "No known run passes" not in pages["page"].content.decode()
    assert "and passes on 1" in pages["part"].content.decode()
    assert next(row[0].passes_on for row in pages["list"].context["rows"]) == ["good_list"]


def test_a_run_is_asked_for_and_shown(bob, shop, bad):
    golden = keep(bad)
    bob.post(reverse("run_golden", args=["shop", golden.golden_id]), {"agent": "new"})

    run = GoldenRun.objects.get()
    page = bob.get(reverse("golden_run", args=["shop", run.golden_run_id]))
    assert page.context["is_live"]
    assert b"hx-get" in page.content

    Replay.objects.update(state="done", verdict="reproduced", produced_run=Run.objects.get(run_id="bad"))
    page = bob.get(reverse("golden_run", args=["shop", run.golden_run_id]))
    assert not page.context["is_live"]
    assert b"hx-get" not in page.content
    assert "which belongs to u_2" in page.content.decode()


def test_a_run_without_an_agent_is_refused_in_words(bob, bad):
    golden = keep(bad)

    page = bob.post(reverse("run_golden", args=["shop", golden.golden_id]), follow=True)

    assert "needs the name of a registered agent" in page.content.decode()
    assert not GoldenRun.objects.exists()


def test_quarantine_export_and_deletion(bob, bad):
    golden = keep(bad)
    here = reverse("quarantine_golden", args=["shop", golden.golden_id])

    assert "Say why" in bob.post(here, {"do": "begin", "reason": " "}, follow=True).content.decode()
    assert (
        "flaky since the move"
        in bob.post(here, {"do": "begin", "reason": "flaky since the move"}, follow=True).content.decode()
    )
    assert "In quarantine since" not in bob.post(here, {"do": "end"}, follow=True).content.decode()
    export = bob.get(reverse("export_golden", args=["shop", golden.golden_id]))
    assert export.content[:2] == b"PK"
    bob.post(reverse("delete_golden", args=["shop", golden.golden_id]))
    assert not Golden.objects.exists()


def changed(index, **values):
    patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in values.items()]
    return {**tool_step(index=index, tool_name="search", arguments={}, result=[]), "state": {"after": patch}}


def test_states_between_steps_are_demanded_by_ticks_and_fail_with_what_stood_there(bob, shop):
    """The three checks that people write of an agent's states."""
    steps = [changed(1, retrieved_docs_count=2), changed(2, selected_tool="search"), changed(3, answer_length=41)]
    run = load_record(shop, run_id="stated", session_id="chat", output="Found.", steps=steps, initial_state={})
    words = {
        "/retrieved_docs_count after step 1 is": "5",
        "/selected_tool after step 2 is": "summarize",
        "/answer_length at the end is more than": "100",
    }
    rows = {row.proposal.words: row for row in bob.get(form_of(run)).context["rows"]}
    assert [rows[each].typed for each in words] == ["2", "search", "41"]
    sent = {f"value_{rows[each].number}": typed for each, typed in words.items()}

    post(bob, run, **sent, check=[str(rows[each].number) for each in words])

    golden = Golden.objects.get()
    page = bob.get(reverse("golden", args=["shop", golden.golden_id]))
    assert [(cells[0].outcome, cells[0].seen) for _, cells in page.context["checks"]] == [
        ("fail", "at the end, /answer_length is 41"),
        ("fail", "after step 1, /retrieved_docs_count is 2"),
        ("fail", "after step 2, /selected_tool is search"),
    ]


# --- all ---------------------------------------------------------------------------------------


def test_the_ticked_goldens_run_with_the_ticked_agents(bob, bad):
    first, second = keep(bad), keep(bad, name="Second")

    answer = bob.post(
        reverse("run_goldens", args=["shop"]), {"golden": [first.golden_id], "agent": ["old", "new"], "label": "v2"}
    )

    batch = GoldenBatch.objects.get()
    assert not batch.is_deploy
    assert answer.headers["Location"] == reverse("golden_batch", args=["shop", batch.golden_batch_id])
    page = bob.get(answer.headers["Location"])
    rows = [(row.name, row.agent) for row, _ in page.context["rows"]]
    assert rows == [("Own orders", "old"), ("Own orders", "new")]
    assert second.runs.count() == 0
    assert page.context["not_run"] == [second]
    assert "0 of 2 golden runs passed, 2 not finished" in page.content.decode()
    Replay.objects.filter(golden_run__in=batch.runs.all()[:1]).update(state="running")
    table = match(r"<tbody>(.*?)</tbody>", bob.get(answer.headers["Location"]).content.decode())
    assert re.findall(r"<span>(running|queued)</span>", table) == ["running", "queued"]
    Replay.objects.update(state="queued")

    bob.post(reverse("cancel_golden_batch", args=["shop", batch.golden_batch_id]))
    page = bob.get(answer.headers["Location"])
    assert (page.context["result"], "Run the 2 that could not run" in page.content.decode()) == ("could_not_run", True)
    for suffix, words in (("md", "## Goldens"), ("xml", "<testsuite")):
        report = bob.get(reverse("golden_batch_report", args=["shop", batch.golden_batch_id, suffix]))
        assert words in report.content.decode()

    bob.post(reverse("resume_golden_batch", args=["shop", batch.golden_batch_id]))
    page = bob.get(answer.headers["Location"])
    assert (page.context["over"], page.context["left"], "that could not run" in page.content.decode()) == (0, 0, False)


def test_the_table_has_the_goldens_that_failed_first_each_with_why(bob, bad):
    keep(bad, name="First")
    keep(bad, name="Second")
    place = bob.post(reverse("run_goldens", args=["shop"]), {"agent": ["new"]}).headers["Location"]
    Replay.objects.update(state="done")
    GoldenRun.objects.update(result="pass")
    GoldenRun.objects.filter(golden__name="Second").update(result="fail", words="Expected: at most 1 call of find")

    page = bob.get(place)

    assert [row.name for row, _ in page.context["rows"]] == ["Second", "First"]
    assert "Expected: at most 1 call of find" in match(r"<tbody>(.*?)</tr>", page.content.decode())


def test_what_failed_or_all_of_it_is_run_again(bob, bad):
    kept = [keep(bad, name=name) for name in ("First", "Second")]
    place = bob.post(reverse("run_goldens", args=["shop"]), {"agent": ["new"], "label": "v2"}).headers["Location"]
    assert "Run again" not in bob.get(place).content.decode(), "while it runs"
    Replay.objects.update(state="done")
    GoldenRun.objects.update(result="pass")
    kept[1].runs.update(result="fail")

    page = bob.get(place).content.decode()
    forms = re.findall(r'<form method="post"\s+action="/p/shop/goldens/run">(.*?)</form>', page, re.DOTALL)
    sent = [re.findall(r'name="(label|golden|agent)"\s+value="([^"]*)"', form) for form in forms]

    assert [re.sub(r"<[^>]+>", "", form).split()[:4] for form in forms] == [
        ["Run", "the", "1", "failed"],
        ["Run", "again"],
    ]
    assert sent[0] == [("label", "v2"), ("golden", kept[1].golden_id), ("agent", "new")]
    assert {value for name, value in sent[1] if name == "golden"} == {golden.golden_id for golden in kept}


def test_a_golden_leads_with_its_last_result(bob, bad):
    golden = keep(bad)
    address = reverse("golden", args=["shop", golden.golden_id])

    def headline():
        page = bob.get(address).content.decode()
        return " ".join(re.sub(r"<[^>]+>", " ", match(r'<p class="verdict-words">(.*?)</p>', page)).split())

    assert headline() == "Not run yet"
    bob.post(reverse("run_golden", args=["shop", golden.golden_id]), {"agent": "new"})
    assert headline() == "Running"
    golden.runs.update(result="fail", words="Expected: at most 1 call of find; find was called 2 times")
    assert headline() == "Failed. Expected: at most 1 call of find; find was called 2 times"
    seen = {"check": golden.checks[0], "words": "w", "passed": False, "seen": "it answered"}
    golden.runs.update(words="Expected: w; it answered", checks=[seen])
    assert headline() == "Failed. Expected: w; it answered"
    golden.runs.update(result="pass", words="The check passed")
    assert headline() == "Passed"


def test_a_failure_is_told_once_and_leads_to_its_step_beside_the_results_before(bob, shop):
    run = load_record(shop, run_id="well", session_id="well", output="Yes.", steps=[tool_step(), model_step(1)])
    golden = keep(run, replay={"mode": "recording"}, checks=[{"kind": "output", "contains": "No"}])
    for _ in range(2):
        bob.post(reverse("run_golden", args=["shop", golden.golden_id]))
    failed = {"check": golden.checks[0], "words": "w", "passed": False, "seen": "it answered “Yes.”"}
    Replay.objects.update(state="done", verdict="reproduced", produced_run=None)
    golden.runs.update(result="fail", words="Expected: w; it answered “Yes.”", checks=[failed])

    page = words_of(answer := bob.get(reverse("golden", args=["shop", golden.golden_id])))

    assert "Failed. The check did not hold." in page
    assert page.count("it answered") == 1
    assert "last 2 runs failed failed" in page
    assert "?run=well&amp;step=2" in answer.content.decode()
    assert "fails on its own recording, which went well" in words_of(bob.get(reverse("goldens", args=["shop"])))


def test_the_page_of_a_golden_that_runs_no_code_says_so_once(bob, bad):
    golden = keep(bad, replay={"mode": "recording"})

    page = bob.get(reverse("golden", args=["shop", golden.golden_id])).content.decode()

    assert "This golden repeats the recording and runs none of your code" in page
    assert "This checks the recording, not your code." not in page


def test_the_table_says_what_broke_since_the_last_deploy(bob, bad, shop):
    keep(bad)
    good = run_of(shop, "good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad"})
    pages = []
    for label, produced, fields in (("v1", good, {"deploy": "1"}), ("v2", bad, {})):
        answer = bob.post(reverse("run_goldens", args=["shop"]), {"agent": ["new"], "label": label, **fields})
        Replay.objects.filter(state="queued").update(state="done", verdict="diverged", produced_run=produced)
        pages.append(bob.get(answer.headers["Location"]).content.decode())
        Replay.objects.update(produced_run=None)

    assert ["broke" in page for page in pages] == [False, True]
    assert "0 of 1 golden run passed, 1 failed; since the last deploy 1 broke" in pages[1]
    assert ">v1</span></a>" in pages[1]
    assert "At the last deploy" in pages[1]


def test_the_table_says_what_each_golden_came_to_the_last_time(bob, bad):
    keep(bad, name="Own orders")
    places = []
    for result in ("pass", "fail"):
        answer = bob.post(reverse("run_goldens", args=["shop"]), {"agent": ["new"], "label": f"run {result}"})
        Replay.objects.filter(state="queued").update(state="done")
        GoldenRun.objects.filter(result=None).update(result=result)
        places.append(answer.headers["Location"])
    keep(bad, name="New one")
    answer = bob.post(reverse("run_goldens", args=["shop"]), {"agent": ["new"]})

    first, second = (bob.get(place).content.decode() for place in places)
    third = bob.get(answer.headers["Location"])

    assert "Last time" not in first
    assert re.search(r"compared with.*run pass.*Last time", second, re.DOTALL)
    assert [(row.name, known) for row, known in third.context["rows"]] == [("New one", None), ("Own orders", "fail")]
    assert '<span class="soft">not run</span>' in third.content.decode()


def test_a_deploy_is_noted_by_a_tick_and_listed(bob, bad):
    keep(bad)

    answer = bob.post(reverse("run_goldens", args=["shop"]), {"agent": ["new"], "label": "v2", "deploy": "1"})

    assert "Deploy of v2" in bob.get(answer.headers["Location"]).content.decode()
    assert f'href="{answer.headers["Location"]}">v2</a>' in bob.get(reverse("goldens", args=["shop"])).content.decode()


def test_the_worst_of_the_runs_made_together_is_the_last_result(bob, bad, shop):
    """Not the run that happened to be asked for last; and of the deploy too."""
    golden = keep(bad)
    good = run_of(shop, "good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad"})
    bob.post(reverse("run_goldens", args=["shop"]), {"agent": ["old", "new"], "label": "v2", "deploy": "1"})
    failed, passed = golden.runs.order_by("pk")
    end(failed, bad)
    assert last_result_of(bob) == ("1 golden still running, none failed.", ["failed", "queued"], "running")

    end(passed, good)

    assert last_result_of(bob) == ("1 of 1 golden failed.", ["failed", "passed"], "failed")
    page = bob.get(reverse("goldens", args=["shop"]))
    [next_step] = re.findall(r'href="([^"]+)"\s+data-next', page.content.decode())
    assert next_step == reverse("golden_run", args=["shop", failed.golden_run_id])
    failed.refresh_from_db()
    assert failed.words in words_of(page), "why it fails is said beside it"
    told = words_of(bob.get(reverse("workflow", args=["shop", "chat"])))
    assert "Its golden does not pass on the latest code with old." in told
    assert "golden Own orders: failed with old after the deploy of v2" in told
    assert "There is nothing left to do here." not in told

    bob.post(reverse("run_golden", args=["shop", golden.golden_id]), {"agent": "new"})
    assert "Its golden is running on the latest code." in words_of(bob.get(reverse("workflow", args=["shop", "chat"])))
    end(golden.runs.order_by("pk").last(), good)
    assert last_result_of(bob) == ("Your golden holds.", ["passed"], "failed")


@pytest.mark.parametrize(("made", "verdict", "word"), [("bad", "reproduced", "failed"), ("good", "diverged", "passed")])
def test_the_replay_of_a_golden_leads_with_what_the_golden_came_to(bob, bad, shop, made, verdict, word):
    golden = keep(bad)
    run_of(shop, "good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad"})
    bob.post(reverse("run_golden", args=["shop", golden.golden_id]), {"agent": "new"})
    run = golden.runs.get()
    end(run, Run.objects.get(run_id=made), verdict)
    run.refresh_from_db()
    names = ["shop", run.replay.replay_id]

    row = re.search(r"(\w+) (\S[^<>]*?) golden run of bad #1", words_of(bob.get(reverse("replays", args=["shop"]))))
    page = bob.get(reverse("replay", args=names))
    run.refresh_from_db()

    assert row[0].endswith(
        f"{word} {run.words if word == 'failed' else f'{run.words}; replay diverged'} golden run of bad #1"
    )
    assert re.search(r"Golden run #1 of bad state (\w+)", words_of(page))[1] == word
    assert f"{word} : {run.words} Checks of the golden" in words_of(page)
    assert "Attempts" not in words_of(page), "a golden's run is none of them"
    assert f'href="{reverse("golden", args=["shop", golden.golden_id])}">Own orders</a>' in page.content.decode()
    for suffix, line in (("md", 2), ("txt", 2)):
        told = bob.get(reverse("replay_report", args=[*names, suffix])).content.decode()
        assert f"{word.capitalize()}: Own orders. {run.words}" in told.splitlines()[line], told
    assert f"/goldens/{golden.golden_id}>)" in bob.get(reverse("replay_report", args=[*names, "md"])).content.decode()


def end(run, produced, verdict="diverged"):
    Replay.objects.filter(produced_run=produced).update(produced_run=None)
    Replay.objects.filter(golden_run=run).update(state="done", verdict=verdict, produced_run=produced)


def words_of(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page.content.decode()).split())


def last_result_of(client):
    """The story, the states in the row of the only golden, and the state of the only deploy."""
    page = words_of(client.get(reverse("goldens", args=["shop"])))
    story = re.search(r"\d of \d goldens? \w+\.|\d goldens? still running, none failed\.|Your golden holds\.", page)[0]
    deploy = re.search(r"last deploy v2 (\w+)", page)[1]
    return story, re.findall(r"(queued|failed|passed) (?:old|new)", page), deploy


@pytest.mark.parametrize(
    ("modes", "story"),
    [
        (["recording"], "Your golden passes on its own recording alone, which runs none of your code."),
        (["recording"] * 2, "All 2 goldens pass on their own recordings alone, which runs none of your code."),
        (["recording", "code"], "All 2 goldens hold, 1 of them on its own recording alone."),
        (["code"], "Your golden holds."),
    ],
)
def test_a_golden_that_passes_on_its_own_recording_is_not_said_to_hold(bob, bad, shop, modes, story):
    for number, mode in enumerate(modes):
        golden = keep(bad)
        Golden.objects.filter(pk=golden.pk).update(mode=mode, fails_on=[], passes_on=["bad"])
        replay = Replay.objects.create(project=shop, run=bad, content=bad.content, number=90 + number, state="done")
        GoldenRun.objects.create(golden=golden, replay=replay, result="pass")

    page = words_of(bob.get(reverse("goldens", args=["shop"])))

    assert story in page
    assert page.count("passes only on its recording") == modes.count("recording")


def test_what_fails_comes_first_and_the_header_counts_all_goldens(bob, bad, shop, monkeypatch):
    monkeypatch.setattr("sessions_app.web.goldens.views.PAGE", 2)
    held, failing, shelved, _ = (keep(bad, name=name) for name in ("Held", "Failing", "Shelved", "New"))
    for golden, result in ((held, "pass"), (failing, "fail"), (shelved, "fail")):
        replay = Replay.objects.create(project=shop, run=bad, content=bad.content, number=golden.pk, state="done")
        GoldenRun.objects.create(golden=golden, replay=replay, result=result)
    Golden.objects.filter(pk=shelved.pk).update(quarantined_at=bad.received_at, quarantine_reason="flaky")

    first, second = (bob.get(reverse("goldens", args=["shop"]) + query) for query in ("", "?from=2"))

    names = [[golden.name for golden, *_ in page.context["rows"]] for page in (first, second)]
    assert names == [["Failing", "New"], ["Held", "Shelved"]]
    assert "1 golden failed, 1 not run yet. 1 passed · 1 in quarantine" in words_of(first)


@pytest.mark.parametrize(
    ("results", "story"),
    [
        ([None, None], "2 goldens not run yet."),
        ([None], "1 golden not run yet."),
        (["pass", None], "1 of 2 goldens holds; 1 not run yet."),
        (["fail", None], "1 golden failed, 1 not run yet."),
    ],
)
def test_a_golden_that_was_never_run_is_not_said_to_fail(bob, bad, shop, results, story):
    for result in results:
        golden = keep(bad)
        if result:
            replay = Replay.objects.create(project=shop, run=bad, content=bad.content, number=golden.pk, state="done")
            GoldenRun.objects.create(golden=golden, replay=replay, result=result)

    for page in ("goldens", "project"):
        assert f" {story} " in words_of(bob.get(reverse(page, args=["shop"])))
    assert "never run ·" not in words_of(bob.get(reverse("goldens", args=["shop"])))


@pytest.mark.parametrize(("mode", "is_red"), [("recording", False), ("code", True)])
def test_a_golden_that_fails_whatever_the_code_does_is_not_red(bob, bad, shop, mode, is_red):
    golden = keep(bad)
    Golden.objects.filter(pk=golden.pk).update(mode=mode)
    replay = Replay.objects.create(project=shop, run=bad, content=bad.content, number=1, state="done")
    GoldenRun.objects.create(golden=golden, replay=replay, result="fail")

    page = bob.get(reverse("project", args=["shop"])).content.decode()

    line = match(r'(<a [^>]*href="/p/shop/goldens">1 of 1 golden fail[^.]*\.)', page)
    assert ("wrong" in line) is is_red


def test_the_list_asks_again_while_a_golden_runs(bob, bad):
    keep(bad)
    address = reverse("goldens", args=["shop"])
    assert b"every 2s" not in bob.get(address).content
    bob.post(reverse("run_goldens", args=["shop"]), {"agent": ["new"]})
    assert b"every 2s" in bob.get(address).content

    part = bob.get(address, headers={"hx-request": "true"})
    again = bob.get(address, headers={"hx-request": "true", "if-none-match": part["ETag"]})

    assert again.status_code == 304
    assert b'id="goldens-standing" hx-swap-oob="true"' in part.content
    end(GoldenRun.objects.get(), bad)
    over = bob.get(address, headers={"hx-request": "true", "if-none-match": part["ETag"]})
    assert "1 of 1 golden failed." in words_of(over)
    assert "Open the failing golden" in words_of(over)


def test_the_list_costs_the_same_for_one_golden_and_for_many(bob, bad):
    def queries():
        with CaptureQueriesContext(
            connection,
        ) as captured:
            bob.get(reverse("goldens", args=["shop"]))
        return len(captured)

    def run_once(golden):
        replay = Replay.objects.create(
            project=bad.project, run=bad, content=bad.content, number=golden.pk, state="done", verdict="reproduced"
        )
        GoldenRun.objects.create(golden=golden, replay=replay, result="pass")

    run_once(keep(bad))
    queries()
    one = queries()
    for number in range(9):
        run_once(keep(bad, name=f"Golden {number}"))

    assert queries() == one


def test_without_goldens_the_list_says_how_to_make_one(bob):
    assert "To make one, open a session" in bob.get(reverse("goldens", args=["shop"])).content.decode()


# --- who ---------------------------------------------------------------------------------------


def test_viewers_look_and_start_nothing(shop, bad):
    golden = keep(bad)
    viewer = client_of(make_user("vera", shop, role="viewer"))

    assert viewer.get(reverse("goldens", args=["shop"])).status_code == 200
    page = viewer.get(reverse("golden", args=["shop", golden.golden_id]))
    assert (page.status_code, b"Delete this golden" in page.content) == (200, False)
    assert viewer.get(form_of(bad)).status_code == 403
    for name in ("run_golden", "quarantine_golden", "delete_golden"):
        assert viewer.post(reverse(name, args=["shop", golden.golden_id])).status_code == 403
    assert viewer.post(reverse("run_goldens", args=["shop"])).status_code == 403
    assert not Replay.objects.exists()


def test_a_session_leads_to_the_form(bob, shop):
    run = load_example(shop, "cancel_bug")
    page = bob.get(reverse("session", args=["shop", run.session.session_id])).content.decode()

    assert f'href="/p/shop/s/{run.session.session_id}/golden?run={run.run_id}"' in page


# --- from elsewhere ----------------------------------------------------------------------------


def test_a_fork_is_kept_as_what_it_produced_and_a_code_replay_as_what_it_replayed(bob, shop, bad):
    good = run_of(shop, "good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad", "step": 1})
    of_bad = {"project": shop, "run": bad, "content": bad.content, "state": "done", "verdict": "diverged"}
    fork = Replay.objects.create(**of_bad, number=1, mode="fork", order={"at_step": 1}, produced_run=good)
    made = run_of(shop, "bad_replay_1", "Order #4398 is shipped.", origin="replay", parent={"run_id": "bad"})
    order = {"agent": "new", "tools": {"run": True}}
    code = Replay.objects.create(
        **of_bad, number=1, mode="code_and_tools", queue="code", order=order, produced_run=made
    )
    plain = Replay.objects.create(**{**of_bad, "verdict": "reproduced"}, number=2, mode="recording")

    links = [
        bob.get(reverse("replay", args=["shop", each.replay_id])).context["golden_link"] for each in (fork, code, plain)
    ]

    assert links == [
        "/p/shop/s/chat/golden?run=good",
        f"/p/shop/s/chat/golden?run=bad&replay={code.replay_id}",
        None,
    ]
    first = bob.get(links[1]).context["form"].initial
    assert first == {
        "mode": "code_and_tools", "agent": "new", "on_difference": "play_on", "name": "Repair of bad",
        "description": "find was called without user_id",
    }  # fmt: skip


@pytest.mark.parametrize("of", ["fork", "code"])
def test_a_fix_becomes_a_golden_without_a_thing_typed(bob, shop, bad, of):
    good = run_of(shop, "good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad", "step": 1})
    known = {"project": shop, "run": bad, "content": bad.content, "state": "done", "number": 1, "produced_run": good}
    if of == "fork":
        replay = Replay.objects.create(**known, mode="fork", order={"at_step": 1, "hypothesis": "Own orders alone"})
    else:
        replay = Replay.objects.create(**known, mode="code", queue="code", order={"agent": "new"})
    link = bob.get(reverse("replay", args=["shop", replay.replay_id])).context["golden_link"]

    page = bob.get(link)
    form, rows = page.context["form"], page.context["rows"]
    assert [row.proposal.words for row in rows if row.is_ticked] == [
        "the answer contains",
        "no value of another user is revealed",
    ]
    sent = {
        "check": [row.number for row in rows if row.is_ticked],
        **{f"value_{row.number}": row.typed for row in rows},
    }
    named = {name: value for name, value in form.initial.items() if value}
    kept = bob.post(link.partition("?")[0] + page.context["action"], {**sent, **named})

    golden = Golden.objects.get()
    assert kept.headers["Location"] == reverse("golden", args=["shop", golden.golden_id])
    assert golden.name == ("Own orders alone" if of == "fork" else "Repair of bad")
    assert golden.checks[0] == {"kind": "output", "contains": "#4398"}
    assert ("bad" in golden.fails_on, "good" in golden.passes_on) == (True, True)


def test_the_box_finds_goldens_and_their_runs(bob, bad):
    golden = keep(bad)
    bob.post(reverse("run_golden", args=["shop", golden.golden_id]), {"agent": "new"})
    run = GoldenRun.objects.get()

    for text, address in (
        (golden.golden_id, reverse("golden", args=["shop", golden.golden_id])),
        (f"see {run.golden_run_id}", reverse("golden_run", args=["shop", run.golden_run_id])),
    ):
        assert bob.get(reverse("find"), {"q": text}).headers["Location"] == address


def test_replays_of_goldens_are_no_attempts(bob, bad):
    golden = keep(bad)
    bob.post(reverse("run_golden", args=["shop", golden.golden_id]), {"agent": "new"})
    Replay.objects.update(state="done", verdict="diverged")
    page = bob.get(reverse("session", args=["shop", "chat"]))

    assert page.context["replays"] == []
    workflow = bob.get(reverse("workflow", args=["shop", "chat"])).content.decode()
    assert "Not reproduced yet." in workflow
    assert "golden run of" in bob.get(reverse("replays", args=["shop"])).content.decode()


def test_goldens_and_failing_runs_are_downloaded_as_datasets(bob, bad, shop):
    golden = keep(bad)
    run_of(shop, "lost", None, status="error", error={"type": "TimeoutError", "message": "late"})
    page = bob.get(reverse("goldens", args=["shop"])).content.decode()

    ids = []
    for query in ("", "?format=inspect", "?of=runs", "?of=runs&amp;format=openai-evals"):
        assert f'href="/p/shop/goldens/dataset.jsonl{query}"' in page
        answer = bob.get(f"/p/shop/goldens/dataset.jsonl{query.replace('&amp;', '&')}")
        ids.append([json.loads(line)["id"] for line in answer.content.splitlines()])

    assert ids == [[golden.golden_id], [golden.golden_id], ["lost"], ["lost"]]
    assert bob.get("/p/shop/goldens/dataset.jsonl?format=csv").status_code == 404


def test_ticked_goldens_or_all_are_downloaded_for_ones_own_tests(bob, bad):
    golden, other = keep(bad), keep(bad)
    assert f'formaction="{reverse("export_goldens", args=["shop"])}"' in bob.get("/p/shop/goldens").content.decode()

    for ticked, expected in (([other.golden_id], [other]), ([], [other, golden])):
        answer = bob.post(reverse("export_goldens", args=["shop"]), {"golden": ticked})
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            rows = json.loads(archive.read("goldens.json"))["goldens"]
        assert [row["golden_id"] for row in rows] == [each.golden_id for each in expected]


def test_viewers_are_offered_no_dataset(shop, bad):
    vera = client_of(make_user("vera", shop, "viewer"))

    assert "dataset.jsonl" not in vera.get(reverse("goldens", args=["shop"])).content.decode()
    assert vera.get(reverse("golden_dataset", args=["shop"])).status_code in (403, 404)


@pytest.mark.parametrize(("typed", "kept"), [("7", 7), ("", 5)])
def test_a_golden_with_a_live_model_is_asked_as_often_as_the_form_says(bob, bad, settings, typed, kept):
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"
    assert 'name="samples"' in bob.get(form_of(bad)).content.decode()
    ticked = ticks(bob, bad, "no tool that changes something is called")

    assert post(bob, bad, **ticked, mode="live", samples="0").status_code == 422
    assert post(bob, bad, **ticked, mode="live", samples="3", at_least="4").status_code == 422
    post(bob, bad, **ticked, mode="live", samples=typed, at_least="2")

    golden = Golden.objects.get()
    assert golden.order == {"samples": kept, "at_least": 2}
    page = bob.get(reverse("golden", args=["shop", golden.golden_id])).content.decode()
    assert f"{kept} times, of which 2 must pass" in page


def test_a_golden_with_a_live_model_shows_its_budget_before_it_runs(bob, shop, settings):
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"
    answer = model_step(1, input_tokens=300, output_tokens=20)
    run = load_record(shop, run_id="asked", session_id="chat", steps=[answer])
    checks = [{"kind": "output", "contains": "done"}]
    wanted = {"name": "live", "checks": checks, "replay": {"mode": "live", "samples": 4}}
    golden = create_golden(run=run, wanted=wanted)

    page = bob.get(reverse("golden", args=["shop", golden.golden_id])).content.decode()
    options = bob.get(f"{reverse('replay_options', args=['shop', 'chat'])}?run=asked").content.decode()

    assert "4 samples: about 4 requests, 1,200 tokens in, 80 out; at most 200 requests." in page
    create_golden(run=run, wanted={**wanted, "name": "live too", "replay": {"mode": "live", "samples": 2}})
    listed = bob.get(reverse("goldens", args=["shop"])).content.decode()

    assert "6 samples: about 6 requests, 1,800 tokens in, 120 out; at most 400 requests." in listed
    assert "Shows how often today&#x27;s model does the same" in page
    assert "1 sample: about 1 request, 300 tokens in, 20 out; at most 200 requests." in options
