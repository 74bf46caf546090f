"""Approvals that code of the team's decides while a run goes on, decided otherwise where the agent is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved

from replay_recorder.replaying.observing import NothingObserved, Replay, Tools, observe
from replay_recorder.replaying.own_agent import OwnAgent
from replay_recorder.replaying.recording import read_recording
from sessions_app.core.formats.native import parse_native
from sessions_app.core.replay.own_machine import judge_observed
from tests.recorder.playing import recorded
from tests.recorder.rare_agents import denied_by_code_that_answers_for_all_calls, denied_while_it_runs
from tests.recorder.scenarios import Play, Scripted, call, says


def decided_by_code(agent: Any, decisions: dict[int, bool], tools: Tools) -> tuple[str, int | None, str | None]:
    """1 model; 2 approved, 3 denied, both by code of the team's while the run went on; 4 model."""
    record = json.loads(recorded(denied_while_it_runs())[-1])
    observed = observe(Replay(read_recording(record), OwnAgent(agent), tools, decisions=decisions))
    run = parse_native(json.dumps(record).encode())
    result, _ = judge_observed(run, parse_native(observed), tools=tools, run_id="again")
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)


@pytest.mark.parametrize("tools", ["frozen", "run"])
def test_what_code_decides_while_it_runs_may_be_decided_otherwise(tools: Tools):
    assert decided_by_code(denied_while_it_runs().agent, {}, tools) == ("reproduced", None, None)
    assert decided_by_code(denied_while_it_runs().agent, {2: False}, tools) == ("diverged", 2, "result")


def test_a_tool_that_code_had_denied_runs_where_it_is_approved():
    assert decided_by_code(denied_while_it_runs().agent, {3: True}, "run") == ("diverged", 3, "result")


def paying(name: str) -> Play:
    agent: Agent[None, Any] = Agent(Scripted(says("Done.")), name="agent", output_type=[str, DeferredToolRequests])
    agent.tool_plain(name=name, requires_approval=True, description="Pay.")(pay)
    history: list[ModelMessage] = [ModelRequest.user_text_prompt("Go"), says(call("pay", {"x": 2}, "1"))]
    approved = DeferredToolResults(approvals={"1": ToolApproved(override_args={"x": 7})})
    return Play(agent, None, message_history=history, deferred_tool_results=approved)


def pay(x: int) -> int:
    return x * 10


@pytest.mark.parametrize("tools", ["frozen", "run"])
@pytest.mark.parametrize(
    ("name", "ends"), [("pay", ("reproduced", None, None)), ("pay_back", ("diverged", 1, "result"))]
)
def test_an_approved_call_of_a_tool_that_is_gone_has_another_answer_and_no_other_arguments(name, ends, tools: Tools):
    record = json.loads(recorded(paying("pay"))[-1])
    observed = observe(Replay(read_recording(record), OwnAgent(paying(name).agent), tools))
    run = parse_native(json.dumps(record).encode())
    result, _ = judge_observed(run, parse_native(observed), tools=tools, run_id="again")

    found = result.divergence
    assert ((result.verdict, found.step, found.path) if found else (result.verdict, None, None)) == ends
    assert found is None or "Unknown tool name" in str(found.replayed)


def test_code_that_overrules_a_decision_is_told_so():
    with pytest.raises(NothingObserved, match="decided on the call of pay_back after the replay had"):
        decided_by_code(denied_by_code_that_answers_for_all_calls().agent, {2: False}, "frozen")
