"""`manage.py fork`, `replay` and `resume`, and the prompt at a stop."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from sessions_app.management import replaying
from sessions_app.management.prompt import HELP, ask_at_stop
from sessions_app.models import Replay
from sessions_app.models.replays import ReplayState
from sessions_app.services.replays import request_replay
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
    call("replay", "cancel_5521", "--agent", "orders", "--break", "when:args.order_id = 1", "--no-wait")
    call("resume", "cancel_5521", "--agent", "orders", "--at", "3", "--no-wait")

    [fork, replay, resumed] = Replay.objects.order_by("pk")
    assert [each.queue for each in (fork, replay, resumed)] == ["code"] * 3
    assert fork.order["changes"] == [{"kind": "agent", "value": "orders"}]
    assert fork.order["tools"] == {"live": ["lookup_order"]}
    assert replay.order == {"agent": "orders", "breakpoints": [{"when": "args.order_id = 1"}]}
    assert (resumed.mode, resumed.order) == ("resume", {"agent": "orders", "at_step": 3})


WRONG = {
    "no run": (("fork", "nobody", "--at", "2", *WORDS), "There is no run 'nobody'"),
    "other project": (("replay", "cancel_5521", "--project", "other"), "There is no run 'cancel_5521' in other"),
    "no JSON": (("fork", "cancel_5521", "--at", "2", *WORDS, "--change", "{"), "--change must be JSON"),
    "no step": (("fork", "cancel_5521", "--at", "2", *WORDS, "--tool-result", "[]"), "STEP=JSON"),
    "no answer": (("fork", "cancel_5521", "--at", "2", *WORDS, "--rule", "docs is empty"), "needs one --answer"),
    "no change": (("fork", "cancel_5521", "--at", "2", *WORDS), "changes: A fork needs"),
    "step 9": (("fork", "cancel_5521", "--at", "9", *WORDS, "--tool-result", "2=1"), "at_step: There is no step 9"),
    "breakpoint": (("replay", "cancel_5521", "--break", "noon"), "--break is written as"),
    "agent": (("replay", "cancel_5521", "--agent", "orders"), "agent: No agent 'orders'"),
    "its own end": (("resume", "cancel_5521"), "say from which step with --at"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_said_with_exit_code_2(run, arguments, words):
    out, error, code = call(*arguments)

    assert (out, code, words in error) == ([], 2, True), error
    assert not Replay.objects.exists()


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
    assert out[-2:] == ["done: reproduced", f"ended with: {run.output_preview}"]


@pytest.mark.django_db(transaction=True)
def test_a_recording_that_is_not_reproduced_has_exit_code_1(run):
    record = example()
    record["steps"][1] = {**record["steps"][1], "arguments": {"order_id": "ORD-1"}}
    make_run(run.project, run_id="changed", steps=record["steps"])

    _, error, code = call("replay", "changed", "--here")

    assert (code, Replay.objects.get().verdict in error) == (1, True)


@pytest.mark.django_db(transaction=True)
def test_a_fork_is_run_here_and_names_the_source_of_each_step(run):
    order = ("cancel_5521", "--at", "2", "--tool-result", '2="nothing"', *WORDS, "--here")

    unknown, error, code = call("fork", *order)
    known, _, known_code = call("fork", *order, "--rule", 'result = "nothing"', "--answer", "I am sorry.")

    assert [line.split()[2] for line in known[1:4]] == ["recorded", "by_hand", "rule"]
    assert (known[-1], known_code) == ("ended with: I am sorry.", 0)
    assert (unknown[1], code) == ("stopped at step 3: nothing knows what the model answers", 1)
    assert [line.split()[2] for line in unknown[2:5]] == ["recorded", "by_hand", "unknown"]
    assert "unknown_from_step" in error


@pytest.mark.django_db(transaction=True)
def test_a_replay_pauses_where_it_was_told_to_and_goes_on(run):
    out, error, code = call("replay", "cancel_5521", "--here", "--break", "tool:cancel_order", stdin="s\nc\n")

    assert (error, code) == (None, 0)
    first, second = (line for line in out if line.startswith("paused"))
    assert first.startswith("paused before step 4: cancel_order({")
    assert first.endswith('"ORD-5521"})  (tool cancel_order)')
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


def test_the_prompt_says_what_it_knows(paused):
    assert [line for line in prompted(paused, "?\n")[1] if line in HELP] == list(HELP)


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


def test_the_prompt_stops_a_paused_replay(paused):
    assert prompted(paused, "q\n")[0] is None
    assert stored(paused).state == "cancelled"


def test_without_more_lines_it_stays_paused(paused):
    assert prompted(paused, "p\n")[0] is None
    assert stored(paused).state == "paused"


TYPED = {
    "[]": {"value": []},
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


@pytest.mark.parametrize(("typed", "answer"), [("Sorry.", "Sorry."), ('{"text": "Sorry."}', {"text": "Sorry."})])
def test_a_models_answer_is_typed(run, typed, answer):
    fork = stop(make_fork(run), model_stop())

    prompted(fork, f"e {typed}\n")

    assert stored(fork).course["answers"][0]["answer"] == answer


@pytest.mark.parametrize("typed", ["c", "s", "e like cancel_5521#99", "e like", "e error:"])
def test_what_is_refused_is_said_and_asked_for_again(run, typed):
    fork = stop(make_fork(run), tool_stop())

    going, said = prompted(fork, f"{typed}\ne 1\n")

    assert going == fork
    assert any(line.startswith(("state: ", "twin", "error")) for line in said)
    assert stored(fork).course["answers"][0]["value"] == 1


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
    assert f"nothing knows what lookup_order({json.dumps({'order_id': 'ORD-1'})}) answers" in said
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
