"""A run that was continued with approvals, forked with another decision: with its tools frozen, and run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_app.core.fork.order import read_order
from sessions_app.core.formats.native import parse_native
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.observed import Result
from sessions_app.core.run import Run
from tests.agents.forking import IN_WORDS, answer_of, forked, sources
from tests.agents.own_agents import forked_by, own, recorded_run, replayed_by
from tests.recorder.openai_playing import bytes_of
from tests.recorder.openai_scenarios import WAYS
from tests.recorder.playing import recorded
from tests.recorder.rare_agents import denied_by_code_that_answers_for_all_calls, denied_while_it_runs
from tests.recorder.replaying import assert_promise_kept
from tests.recorder.scenarios import approval_beside_another_call, approval_second
from tests.recorder.test_openai_agents_replays import played

DENY: JsonObject = {"kind": "approval", "step": 1, "value": "denied", "message": "Not today."}
APPROVE: JsonObject = {"kind": "approval", "step": 2, "value": "approved"}


@pytest.fixture(scope="module")
def run() -> Run:
    """1 pay_back, approved; 2 pay_back, denied; 3 model."""
    return recorded_run(approval_second)


def place(result: Result) -> tuple[str, int | None, str | None]:
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)


def own_fork(run: Run, *changes: JsonObject, runs_tools: bool, **more: Any) -> Result:
    tools = {"run": runs_tools}
    order = read_order({"at_step": 1, "changes": list(changes), "tools": tools, **IN_WORDS, **more})
    return forked_by(run, own(approval_second()), order)


@pytest.mark.parametrize("runs_tools", [False, True])
def test_the_same_decisions_are_the_recorded_run(run: Run, runs_tools: bool):
    result = replayed_by(run, own(approval_second()), runs_tools=runs_tools)

    assert place(result) == ("reproduced", None, None)


def test_a_call_that_was_resumed_without_its_tool_is_judged():
    record = json.loads(recorded(approval_second())[-1])
    for parameters in record["parameters"]:
        parameters["function_tools"] = []
    record["tools"], record["steps"][2]["tools"] = [], []

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [(reason.code, reason.step) for reason in judged.reasons][:1] == [("tool_not_offered", 1)]


def test_a_denial_by_hand_is_told_to_the_model_whose_answer_nobody_knows(run: Run):
    result, made = forked(run, 1, DENY)

    assert place(result) == ("unknown_from_step", 3, "response")
    assert sources(made) == ["by_hand", "recorded", "unknown"]
    assert answer_of(made, 1) == "Not today."


def test_played_on_a_denial_differs_at_its_step(run: Run):
    result, made = forked(run, 1, DENY, on_difference="play_on")

    assert place(result) == ("diverged", 1, "result")
    assert sources(made) == ["by_hand", "recorded", "recorded_for_another_request"]


def test_what_a_tool_answers_that_was_denied_is_not_made_up(run: Run):
    result, made = forked(run, 1, APPROVE, on_difference="play_on")

    assert place(result)[:2] == ("unknown_from_step", 2)
    assert sources(made) == ["recorded", "unknown"]
    assert result.stopped is not None
    assert (result.stopped["name"], result.stopped["arguments"]) == ("pay_back", {"order_id": "ORD-2"})


def test_the_tool_of_a_call_that_is_approved_now_runs(run: Run):
    """Control: frozen, the same order stops at the call."""
    frozen = own_fork(run, APPROVE, runs_tools=False, on_difference="play_on")
    result = own_fork(run, APPROVE, runs_tools=True, on_difference="play_on")

    assert place(frozen)[:2] == ("unknown_from_step", 2)
    assert place(result) == ("diverged", 2, "result")
    assert result.divergence is not None
    assert (result.divergence.recorded, result.divergence.replayed) == ("No.", "paid back ORD-2")
    assert result.facts["sources"] == {"own_code": 2, "recorded_for_another_request": 1}


@pytest.fixture(scope="module")
def decided_by_code() -> Run:
    """1 model; 2 pay_back, approved; 3 pay_back, denied: both by code of the team's; 4 model."""
    return recorded_run(denied_while_it_runs)


def test_the_model_step_behind_a_denial_has_the_number_of_the_recording(decided_by_code: Run):
    assert place(forked(decided_by_code, 2, DENY | {"step": 2})[0]) == ("unknown_from_step", 4, "response")


def test_a_denial_comes_before_what_code_decided_while_the_run_went_on(decided_by_code: Run):
    result, made = forked(decided_by_code, 2, DENY | {"step": 2}, on_difference="play_on")

    assert place(result) == ("diverged", 2, "result")
    assert answer_of(made, 2) == "Not today."
    assert sources(made) == ["recorded", "by_hand", "recorded", "recorded_for_another_request"]


def test_what_a_tool_answers_that_code_denied_is_not_made_up(decided_by_code: Run):
    result, made = forked(decided_by_code, 2, APPROVE | {"step": 3}, on_difference="play_on")

    assert place(result)[:2] == ("unknown_from_step", 3)
    assert sources(made) == ["recorded", "recorded", "unknown"]


@pytest.mark.parametrize("runs_tools", [False, True])
def test_code_of_the_team_is_not_asked_where_a_fork_decides(decided_by_code: Run, runs_tools: bool):
    order = {"at_step": 2, "tools": {"run": runs_tools}, "on_difference": "play_on", **IN_WORDS}
    denied = read_order({"changes": [DENY | {"step": 2}], **order})
    approved = read_order({"changes": [APPROVE | {"step": 3}], **order})

    assert place(forked_by(decided_by_code, own(denied_while_it_runs()), denied)) == ("diverged", 2, "result")
    ended = place(forked_by(decided_by_code, own(denied_while_it_runs()), approved))
    assert ended == (("diverged", 3, "result") if runs_tools else ("unknown_from_step", 3, ended[2]))


def test_code_that_overrules_a_fork_is_no_result(decided_by_code: Run):
    order = read_order({"at_step": 2, "changes": [DENY | {"step": 2}], **IN_WORDS})

    result = forked_by(decided_by_code, own(denied_by_code_that_answers_for_all_calls()), order)

    assert result.verdict == "could_not_run"
    assert "answers for calls that it is not asked about" in str(result.error)


@pytest.mark.parametrize("kind", ["approval", "tool_result"])
@pytest.mark.parametrize("framework", ["pydantic-ai", "openai-agents"])
def test_a_call_that_waited_alone_beside_others_is_a_step_of_the_fork(framework: str, kind: str):
    """The others were answered before the run was continued, and are no steps of it."""
    if framework == "pydantic-ai":
        run = recorded_run(approval_beside_another_call)
    else:
        run = parse_native(bytes_of(played("a_call_that_a_person_approves", next(iter(WAYS)))[-1]))
    said = {"approval": "denied", "tool_result": "other"}[kind]

    result, made = forked(run, 1, {"kind": kind, "step": 1, "value": said}, on_difference="play_on")

    assert place(result) == ("diverged", 1, "result")
    assert sources(made) == ["by_hand", "recorded_for_another_request"]


def test_the_tool_of_a_call_that_is_denied_now_does_not_run(run: Run):
    result = own_fork(run, DENY, runs_tools=True)

    assert place(result) == ("unknown_from_step", 3, "response")
    assert result.facts["live_tools"] == {}
    assert result.facts["sources"] == {"by_hand": 1, "recorded": 1, "unknown": 1}
