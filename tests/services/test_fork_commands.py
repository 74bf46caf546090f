"""`manage.py fork`, `replay` and `resume`, and the prompt at a stop."""

import json
import os
import pty
import re
import threading
from datetime import timedelta
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from sessions_app.management import replaying
from sessions_app.management.prompt import ANSWER_MODEL, ANSWER_TOOL, LONGEST_LINE, ask_at_stop
from sessions_app.management.telling import live_lines, outcome_lines
from sessions_app.models import Replay
from sessions_app.models.replays import ReplayState
from sessions_app.services.replays import request_replay
from sessions_app.services.reports import report_of
from tests.agents.talking import example
from tests.builders import make_project
from tests.services.forking import make_fork, make_run, model_stop, pause, stop, tool_stop

pytestmark = pytest.mark.django_db
WORDS = ("--hypothesis", "It asks again.", "--expect", '{"contains": "sorry"}')


@pytest.fixture
def run():
    return make_run(make_project())


def call(command, *arguments, stdin=""):
    """Lines of the output, the error, the exit code."""
    out = StringIO()
    try:
        call_command(command, *arguments, stdout=out, stdin=StringIO(stdin))
    except CommandError as error:
        return out.getvalue().splitlines(), str(error), error.returncode
    except SystemExit as end:
        return out.getvalue().splitlines(), None, end.code
    return out.getvalue().splitlines(), None, 0


# --- asking ------------------------------------------------------------------------------------


def test_a_fork_is_asked_for_by_options(run):
    options = ("--instructions", "Be brief.", "--tool-result", "2=[]", "--change", '{"kind": "clock", "value": 60}')
    rule = ("--rule", "docs is empty", "--answer", "Nothing.", "--break", "tool:cancel_order", "--break", "step:4")

    out, error, code = call("fork", "cancel_5521", "--at", "2", *options, *rule, *WORDS, "--no-wait")

    fork = Replay.objects.get()
    assert (out, error, code) == ([f"{fork.fork_id}  {fork.replay_id}"], None, 0)
    assert fork.order == {
        "at_step": 2,
        "changes": [
            {"kind": "clock", "value": 60},
            {"kind": "instructions", "value": "Be brief."},
            {"kind": "tool_result", "step": "2", "value": []},
            {"kind": "rule", "when": "docs is empty", "answer": "Nothing."},
        ],
        "hypothesis": "It asks again.",
        "expect": {"contains": "sorry"},
        "breakpoints": [{"tool": "cancel_order"}, {"step": "4"}],
    }


def test_an_agent_is_named(run, settings):
    settings.REPLAY_AGENTS = {"orders": "shop.agents:orders"}
    call("fork", "cancel_5521", "--at", "2", "--agent", "orders", "--live", "lookup_order", *WORDS, "--no-wait")
    live = ("--live", "lookup_order", "--live", "stock_of")
    call("replay", "cancel_5521", "--agent", "orders", "--break", "when:args.order_id = 1", *live, "--no-wait")
    call("resume", "cancel_5521", "--agent", "orders", "--at", "3", "--live", "stock_of", "--no-wait")

    [fork, replay, resumed] = Replay.objects.order_by("pk")
    assert [each.queue for each in (fork, replay, resumed)] == ["code"] * 3
    assert fork.order["changes"] == [{"kind": "agent", "value": "orders"}]
    assert fork.order["tools"] == {"live": ["lookup_order"]}
    assert replay.order == {
        "agent": "orders",
        "breakpoints": [{"when": "args.order_id = 1"}],
        "tools": {"live": ["lookup_order", "stock_of"]},
    }
    assert (resumed.mode, resumed.order) == (
        "resume",
        {"agent": "orders", "at_step": 3, "tools": {"live": ["stock_of"]}},
    )


BROKEN = "--answer must be JSON: Expecting ':' delimiter (line 1, column 8). Correct it."
WRONG = {
    "no run": (("fork", "nobody", "--at", "2", *WORDS), "There is no run 'nobody'"),
    "other project": (("replay", "cancel_5521", "--project", "other"), "There is no run 'cancel_5521' in other"),
    "no JSON": (("fork", "cancel_5521", "--at", "2", *WORDS, "--change", "{"), "--change must be JSON"),
    "no step": (("fork", "cancel_5521", "--at", "2", *WORDS, "--tool-result", "[]"), "STEP=JSON"),
    "no answer": (("fork", "cancel_5521", "--at", "2", *WORDS, "--rule", "docs is empty"), "needs one --answer"),
    "no change": (("fork", "cancel_5521", "--at", "2", *WORDS), "changes: A fork needs"),
    "step x": (("replay", "cancel_5521", "--break", "step:x"), "breakpoints[0].step must be a step's number"),
    "step 9": (("fork", "cancel_5521", "--at", "9", *WORDS, "--tool-result", "2=1"), "at_step: There is no step 9"),
    "breakpoint": (("replay", "cancel_5521", "--break", "noon"), "--break is written as"),
    "agent": (("replay", "cancel_5521", "--agent", "orders"), "agent: No agent 'orders'"),
    "live without agent": (("replay", "cancel_5521", "--live", "stock_of"), "Only the code of a registered agent has"),
    "broken answer": (
        ("fork", "cancel_5521", "--at", "2", *WORDS, "--rule", "docs is empty", "--answer", '{"text"'),
        BROKEN,
    ),
    "broken check": (("fork", "cancel_5521", "--at", "2", *WORDS[:3], '{"contains"'), "--expect must be JSON: "),
    "no UTF-8": (("fork", "cancel_5521", "--at", "2", *WORDS[:3], "\udcff", "--tool-result", "2=1"), "must be UTF-8"),
    "its own end": (("resume", "cancel_5521"), "say from which step with --at"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_said_with_exit_code_2(run, arguments, words):
    out, error, code = call(*arguments)

    assert (out, code, words in error) == ([], 2, True), error
    assert not Replay.objects.exists()


def test_an_unknown_agent_is_answered_with_the_known_ones_and_how_to_register_it(run, settings):
    settings.REPLAY_AGENTS = {"orders": "shop.agents:orders", "support": "shop.agents:support"}

    _, error, _ = call("replay", "cancel_5521", "--agent", "nobody")

    assert "there are: orders, support. To register it, set REPLAY_AGENTS=name=package.module:attribute" in error


def test_the_project_says_which_run_is_meant(run):
    other = make_run(make_project("other"))
    call("replay", "cancel_5521", "--no-wait")
    call("replay", "cancel_5521", "--project", "other", "--no-wait")

    assert [replay.run for replay in Replay.objects.order_by("pk")] == [run, other]


def test_a_run_that_broke_off_is_resumed_where_it_did(run):
    record = example()
    steps = [*record["steps"][:3], {**record["steps"][3], "result": None, "outcome": "interrupted"}]
    make_run(run.project, run_id="killed", status="cut_off", output=None, final=None, steps=steps)

    out, error, code = call("resume", "killed", "--no-wait")

    assert (error, code, Replay.objects.get().order) == (None, 0, {"at_step": 4})
    assert out[0].startswith("killed_resume_")


def test_without_a_worker_it_says_so(run, monkeypatch):
    monkeypatch.setattr(replaying, "PATIENCE", 0.0)

    _, error, code = call("replay", "cancel_5521")

    assert (code, "No worker took it up" in error) == (2, True)
    assert Replay.objects.get().state == "queued"


def test_while_workers_are_busy_it_says_what_it_waits_for(run, monkeypatch):
    """Control: once the worker's lease has run out there is none."""
    monkeypatch.setattr(replaying, "PATIENCE", 0.0)
    soon, gone = timezone.now() + timedelta(minutes=1), timezone.now() - timedelta(minutes=1)
    others = [request_replay(run=run), request_replay(run=run)]
    Replay.objects.filter(pk=others[0].pk).update(state="running", worker="a", lease_until=soon)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            Replay.objects.filter(pk=others[0].pk).update(lease_until=gone)

    monkeypatch.setattr(replaying.time, "sleep", wait)

    out, error, code = call("replay", "cancel_5521")

    assert out[1:] == ["It waits: 1 before it in the queue, and 1 worker is busy."] * 2
    assert (code, "No worker took it up" in error) == (2, True)


# --- running -----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_replay_is_run_here_to_its_end(run):
    out, error, code = call("replay", "cancel_5521", "--here")

    assert (error, code) == (None, 0)
    assert out[0].startswith("cancel_5521  rp_")
    assert [line.split()[:4] for line in out[1:3]] == [
        ["1", "model", "recorded", "gpt-4o"],
        ["2", "tool", "recorded", "lookup_order"],
    ]
    assert out[-3] == "done: reproduced"
    assert out[-2] == report_of(Replay.objects.get()).verdict
    assert out[-2].startswith("Reproduced: ")
    assert out[-1] == f"ended with: {run.output_preview}"


@pytest.mark.django_db(transaction=True)
def test_a_recording_that_is_not_reproduced_has_exit_code_1(run):
    record = example()
    record["steps"][1] = {**record["steps"][1], "arguments": {"order_id": "ORD-1"}}
    make_run(run.project, run_id="changed", steps=record["steps"])

    out, error, code = call("replay", "changed", "--here")

    replay = Replay.objects.get()
    assert (code, error, f"done: {replay.verdict}" in out) == (1, None, True)
    assert out[-2:] == [report_of(replay).verdict, "ended without an outcome"]


@pytest.mark.django_db(transaction=True)
def test_a_fork_is_run_here_and_names_the_source_of_each_step(run):
    order = ("cancel_5521", "--at", "2", "--tool-result", '2="nothing"', *WORDS, "--here")

    unknown, error, code = call("fork", *order)
    known, _, known_code = call("fork", *order, "--rule", 'result = "nothing"', "--answer", "I am sorry.")

    assert [line.split()[2] for line in known[1:4]] == ["recorded", "by_hand", "rule"]
    assert (known[-1], known_code) == ("ended with: I am sorry.", 0)
    assert (unknown[1], code) == ("stopped at step 3: the model's answer is unknown", 1)
    assert [line.split()[2] for line in unknown[2:5]] == ["recorded", "by_hand", "unknown"]
    assert "unknown_from_step. The fork waits for an answer" in error
    assert unknown[-2:] == ["done: unknown_from_step", "Stopped at step 3: the model's answer is unknown"]


@pytest.mark.django_db(transaction=True)
def test_a_replay_pauses_where_it_was_told_to_and_goes_on(run):
    out, error, code = call("replay", "cancel_5521", "--here", "--break", "tool:cancel_order", stdin="s\nc\n")

    assert (error, code) == (None, 0)
    first, second = (line for line in out if line.startswith("paused"))
    assert first.startswith("paused before step 4: cancel_order({")
    assert first.endswith('"changed my mind"})  (tool cancel_order)')
    assert second == "paused before step 5: the model  (one step)"
    assert "done: reproduced" in out


# --- the prompt --------------------------------------------------------------------------------


def prompted(replay, typed):
    """The replay that goes on, and what was said."""
    said = []
    going = ask_at_stop(replay, StringIO(typed), said.extend)
    return going, said


def stored(replay):
    return Replay.objects.get(pk=replay.pk)


@pytest.fixture
def paused(run):
    return pause(request_replay(run=run), tool_stop(at=2))


@pytest.mark.parametrize(("typed", "is_stepping"), [("c\n", False), ("s\n", True), ("h\n\nc\n", False)])
def test_the_prompt_lets_a_paused_replay_go_on(paused, typed, is_stepping):
    going, _ = prompted(paused, typed)

    assert going == paused
    assert (stored(paused).state, stored(paused).course) == ("queued", {"passed": 2, "is_stepping": is_stepping})


@pytest.mark.parametrize(
    ("is_paused", "stopped", "letters", "ways", "missing"),
    [
        (True, tool_stop(), "cspeqh", ANSWER_TOOL, ANSWER_MODEL),
        (True, model_stop(), "cspeqh", ANSWER_MODEL, ANSWER_TOOL),
        (False, tool_stop(), "epqh", ANSWER_TOOL, ANSWER_MODEL),
        (False, model_stop(), "epqh", ANSWER_MODEL, ANSWER_TOOL),
    ],
)
def test_the_prompt_offers_what_works_at_its_stop(run, is_paused, stopped, letters, ways, missing):
    leave = pause if is_paused else stop

    _, (offer, *said) = prompted(leave(make_fork(run), stopped), "h\n")

    assert [words[0] for words in offer.split(" · ")] == list(letters)
    assert [line for line in said if line.startswith("e ")] == list(ways)
    assert not set(missing) & set(said)
    assert set(letters) == {line[0] for line in said}


@pytest.mark.parametrize("letter", ["c", "s"])
def test_what_nothing_knows_cannot_be_continued(run, letter):
    fork = stop(make_fork(run), tool_stop())

    going, said = prompted(fork, f"{letter}\n")

    assert (going, stored(fork).state) == (None, "done")
    assert said[1].startswith("Nothing knows this answer, so the fork cannot")


def test_an_unknown_letter_is_answered_with_those_that_work(paused):
    said = prompted(paused, "?\n")[1]

    assert said[1] == "There is no '?' here. These work:"
    assert [line[0] for line in said[2:]] == ["c", "s", "p", "e", "e", "e", "e", "q", "h"]


@pytest.mark.parametrize(("ask", "iterations"), [(make_fork, 3), (lambda run: request_replay(run=run), 1)])
def test_the_prompt_shows_what_the_replay_stands_at(run, ask, iterations):
    """A fork's state is its own; a replay of the recording has that of the recording before step 2."""
    replay = pause(ask(run), tool_stop(at=2))
    Replay.objects.filter(pk=replay.pk).update(produced_run=make_run(run.project, run_id="so far"))

    _, said = prompted(stored(replay), "p\np state\np arguments\n")

    assert 'arguments  {"order_id": "ORD-1"}' in said
    assert any(line.startswith("message 0  request") for line in said)
    assert f'  "iteration_count": {iterations}' in [line.rstrip(",") for line in said]
    assert '  "order_id": "ORD-1"' in said


@pytest.mark.parametrize(
    ("stopped", "names"), [(tool_stop(at=2), "arguments, messages, state"), (model_stop(), "messages, state")]
)
def test_what_cannot_be_shown_is_answered_with_what_can(run, stopped, names):
    _, said = prompted(pause(request_replay(run=run), stopped), "p everything\n")

    assert said[1:] == [f"There is no 'everything' to show here; there are: {names}."]


def test_the_prompt_stops_a_paused_replay(paused):
    assert prompted(paused, "q\n")[0] is None
    assert stored(paused).state == "cancelled"


def test_without_more_lines_it_stays_paused(paused):
    assert prompted(paused, "p\n")[0] is None
    assert stored(paused).state == "paused"


TYPED = {
    "[]": {"value": []},
    "2.0": {"value": 2.0},
    "null": {"value": None},
    "007": {"value": "007"},
    "2026-11-16": {"value": "2026-11-16"},
    '""': {"value": ""},
    '"{a}"': {"value": "{a}"},
    "Out of order.": {"value": "Out of order."},
    "error: too late": {"error": "too late"},
    "not found": {"not_found": True},
    '"not found"': {"value": "not found"},
}


@pytest.mark.parametrize(("typed", "answer"), TYPED.items(), ids=TYPED)
def test_a_tools_answer_is_typed(run, typed, answer):
    fork = stop(make_fork(run), tool_stop())

    going, _ = prompted(fork, f"e {typed}\n")

    assert going == fork
    assert stored(fork).course["answers"] == [{"at": 4, "asked": "ab" * 32, **answer}]


def test_a_twin_is_typed(run):
    fork = stop(make_fork(run), tool_stop())

    prompted(fork, "e like cancel_5521#4\n")

    [answer] = stored(fork).course["answers"]
    assert (answer["twin"], "cancelled" in answer["value"]) == ({"run_id": "cancel_5521", "step": 4}, True)


CALLS = {"text": "One moment.", "tool_calls": [{"name": "lookup_order", "arguments": {"order_id": "ORD-1"}}]}
MODEL_TYPED = {
    "Sorry.": "Sorry.",
    "42": "42",
    "null": "null",
    '{"text": "Sorry."}': {"text": "Sorry."},
    json.dumps(CALLS): CALLS,
    '"{braces}"': "{braces}",
}


@pytest.mark.parametrize(("typed", "answer"), MODEL_TYPED.items(), ids=MODEL_TYPED)
def test_a_models_answer_is_typed(run, typed, answer):
    fork = stop(make_fork(run), model_stop())

    prompted(fork, f"e {typed}\n")

    assert stored(fork).course["answers"][0]["answer"] == answer


REFUSED = {
    "like cancel_5521#99": "There is no such recorded call: step 99 of cancel_5521.",
    "like": "Name the recorded call by its run and step",
    "like new": "Name the recorded call by its run and step",
    "error:": "Type what the error says",
    "": "Type the answer after e",
    '{"a": 1': "The answer must be JSON: Expecting ',' delimiter (line 1, column 8). Correct it.",
    "[1, 2": "The answer must be JSON: Expecting ',' delimiter (line 1, column 6). Correct it.",
    '"late': "The answer must be JSON: Unterminated string starting at (line 1, column 1). Correct it.",
    '{"a": 1} and more': "The answer must be JSON: Extra data (line 1, column 10). Correct it.",
    '{"a": 1, "a": 2}': "The answer must be JSON: The key 'a' stands twice",
    "NaN": "The answer must be JSON: NaN is not JSON",
    "1e999": "The answer must be JSON: The number 1e999 is out of range.",
    "caf\udce9": "The answer must be UTF-8.",
}


@pytest.mark.parametrize(("typed", "words"), REFUSED.items(), ids=ascii)
def test_a_tools_answer_that_cannot_be_used_is_said_and_asked_for_again(run, typed, words):
    fork = stop(make_fork(run), tool_stop())

    going, said = prompted(fork, f"e {typed}\ne 1\n")

    assert going == fork
    assert said[1].startswith(words)
    assert [answer["value"] for answer in stored(fork).course["answers"]] == [1]


MODEL_REFUSED = {
    "": "Type the answer after e",
    '{"text": "Sorry."': "The answer must be JSON: Expecting ',' delimiter (line 1, column 18). Correct it.",
    "[1]": "answer must be an object",
    '""': "answer needs a text, tool_calls or both",
    '{"txt": "Sorry."}': "answer has text and tool_calls, and no 'txt'.",
    '{"tool_calls": [{"tool": "now"}]}': "answer.tool_calls[0].name must be the name of a tool.",
    '{"tool_calls": [{"name": "now", "args": {}}]}': "answer.tool_calls[0] has name and arguments, and no 'args'.",
    '{"tool_calls": [{"name": "now", "arguments": "{}"}]}': "answer.tool_calls[0].arguments must be an object.",
    "error: late": "A model answers with a text or with tool calls.",
    "not found": "A model answers with a text or with tool calls.",
    "like cancel_5521#4": "A model answers with a text or with tool calls.",
}


@pytest.mark.parametrize(("typed", "words"), MODEL_REFUSED.items(), ids=MODEL_REFUSED)
def test_a_models_answer_that_cannot_be_used_is_said_and_asked_for_again(run, typed, words):
    fork = stop(make_fork(run), model_stop())

    going, said = prompted(fork, f"e {typed}\ne Sorry.\n")

    assert going == fork
    assert said[1].startswith(words)
    assert [answer["answer"] for answer in stored(fork).course["answers"]] == ["Sorry."]


def test_bytes_that_are_no_text_are_asked_for_again(run):
    fork, said = stop(make_fork(run), tool_stop()), []

    ask_at_stop(fork, TextIOWrapper(BytesIO(b"e caf\xe9\ne 1\n"), encoding="utf-8"), said.extend)

    assert said[1] == "The line is not UTF-8, so it was not used. Type it again."


@pytest.mark.parametrize(("length", "is_used"), [(LONGEST_LINE - 200, True), (LONGEST_LINE + 200, False)])
def test_a_line_that_the_terminal_may_have_cut_off_is_not_used(run, length, is_used):
    """A terminal drops what comes after its longest line and says nothing."""
    fork, said = stop(make_fork(run), tool_stop()), []
    keyboard, terminal = pty.openpty()
    typed = f"e {'x' * length}\n\x04".encode()
    typing = threading.Thread(target=os.write, args=(keyboard, typed), daemon=True)
    with os.fdopen(terminal) as stdin:
        typing.start()
        ask_at_stop(fork, stdin, said.extend)
        typing.join()
    os.close(keyboard)

    assert bool(stored(fork).course.get("answers")) is is_used
    assert any(line.startswith("A terminal passes on at most 4,095 bytes") for line in said) is not is_used


def test_an_edit_of_a_recording_goes_on_as_a_fork(run, paused):
    going, _ = prompted(paused, "e []\n")

    assert (going.mode, stored(paused).state) == ("fork", "cancelled")


# --- the end -----------------------------------------------------------------------------------


def ended(run, **columns):
    fork = make_fork(run)
    Replay.objects.filter(pk=fork.pk).update(**columns)
    return stored(fork)


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"state": "done", "verdict": "diverged"}, 0),
        ({"state": "done", "verdict": "reproduced"}, 0),
        ({"state": "done", "verdict": "unknown_from_step"}, 1),
        ({"state": "paused"}, 1),
        ({"state": "failed", "verdict": "could_not_run"}, 2),
        ({"state": "crashed"}, 2),
        ({"state": "cancelled"}, 2),
    ],
)
def test_the_exit_code_tells_how_a_fork_ended(run, columns, code):
    assert replaying.exit_code(ended(run, **columns)) == code


def test_of_a_replay_that_changes_nothing_only_the_same_again_is_well(run):
    replay = request_replay(run=run)
    replay.state, replay.verdict = ReplayState.DONE, "diverged"

    assert replaying.exit_code(replay) == 1


def test_a_replay_that_went_another_way_is_no_error(run):
    """Control: one that failed is. Only that says CommandError."""
    command = replaying.ReplayingCommand(stdout=StringIO())
    replay = request_replay(run=run)
    other = {"step": 2, "path": "a", "recorded": 1, "replayed": 2}
    Replay.objects.filter(pk=replay.pk).update(state="done", verdict="diverged", divergence=other)

    with pytest.raises(SystemExit) as ended:
        command.see_through(replay, no_wait=False, here=False, ask=False, stdin=StringIO())
    Replay.objects.filter(pk=replay.pk).update(state="failed", verdict="could_not_run", error="No room.")
    with pytest.raises(CommandError, match="failed") as failed:
        command.see_through(replay, no_wait=False, here=False, ask=False, stdin=StringIO())

    assert (ended.value.code, failed.value.returncode) == (1, 2)
    assert "Diverged at step 2" in command.stdout.getvalue()


def test_a_stopped_fork_shows_what_comes_near(run):
    near = {
        "run_id": "other",
        "session_id": "s",
        "step": 2,
        "arguments": {"order_id": "\x1b[31m"},
        "differs": ["order_id"],
    }
    command = replaying.ReplayingCommand(stdout=StringIO())
    fork = stop(make_fork(run), tool_stop(nearest=[near]))

    with pytest.raises(CommandError) as caught:
        command.see_through(fork, no_wait=False, here=False, ask=False, stdin=StringIO("e 1\n"))

    said = command.stdout.getvalue()
    assert caught.value.returncode == 1
    assert f"the answer of lookup_order({json.dumps({'order_id': 'ORD-1'})})" in said
    assert "like other#2" in said
    assert "(differs: order_id)" in said
    assert "\x1b" not in said
    assert stored(fork).state == "done"


def test_a_stopped_fork_takes_an_answer_where_somebody_is_asked(run, monkeypatch):
    monkeypatch.setattr(replaying, "PATIENCE", 0.0)
    command = replaying.ReplayingCommand(stdout=StringIO())
    fork = stop(make_fork(run), tool_stop())

    with pytest.raises(CommandError):
        command.see_through(fork, no_wait=False, here=False, ask=True, stdin=StringIO("e 1\n"))

    assert (stored(fork).state, stored(fork).course["passed"]) == ("queued", 4)


LIVE = {"agent": "orders", "tools": {"live": ["stock_of", "refund", "price_of"]}}
FROZEN = 'refund was asked for live and stayed frozen: it does not say metadata={"replay": "read"}.'


def test_what_became_of_each_live_tool_is_said(run):
    drift = {"tool": "stock_of", "step": 2, "path": "result.count", "recorded": 1, "now": 2}
    facts = {"live_tools": {"stock_of": 2}, "lint": [FROZEN], "drift": [drift]}
    replay = ended(run, state="done", verdict="reproduced", order=LIVE, facts=facts)

    assert list(live_lines(replay)) == [
        "live: stock_of ran 2 times",
        f"live: {FROZEN}",
        "live: price_of did not run: no call reached it.",
        "live: stock_of answers differently now, at step 2: result.count",
    ]


@pytest.mark.parametrize("columns", [{"state": "paused"}, {"state": "done", "verdict": "unknown_from_step"}])
def test_what_still_waits_is_not_said_to_have_ended(run, columns):
    """Control: the same fork at its end is."""
    made = make_run(run.project, run_id="made")
    replay = ended(run, **columns, stopped_at=model_stop(), produced_run=made)
    waiting = list(outcome_lines(replay))
    Replay.objects.filter(pk=replay.pk).update(state="done", verdict="diverged", stopped_at=None)
    over = list(outcome_lines(stored(replay)))

    assert not any(line.startswith(("ended with", "expected")) for line in waiting)
    assert [line.split(":")[0] for line in over[-2:]] == ["expected", "ended with"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"state": "paused"}, "/continue."),
        ({"state": "done", "verdict": "unknown_from_step", "stopped_at": model_stop()}, "/answers."),
        ({"state": "failed", "verdict": "could_not_run"}, "failed."),
    ],
)
def test_the_last_line_says_what_to_do(run, columns, words):
    command = replaying.ReplayingCommand(stdout=StringIO())

    with pytest.raises(CommandError, match=re.escape(words) + "$"):
        command._end(ended(run, **columns))


def test_an_interrupted_command_cancels_nothing(run, monkeypatch):
    replay = request_replay(run=run)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replaying.ReplayingCommand, "_wait", interrupted)

    with pytest.raises(CommandError, match="was not cancelled") as caught:
        replaying.ReplayingCommand(stdout=StringIO()).see_through(
            replay, no_wait=False, here=False, ask=False, stdin=StringIO()
        )

    assert (caught.value.returncode, stored(replay).state) == (130, "queued")
