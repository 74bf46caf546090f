"""Approvals that code of the team's decides while a run goes on, decided otherwise where the agent is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay_recorder.replaying.observing import NothingObserved, Replay, Tools, observe
from replay_recorder.replaying.own_agent import OwnAgent
from replay_recorder.replaying.recording import read_recording
from sessions_app.core.formats.native import parse_native
from sessions_app.core.replay.own_machine import judge_observed
from tests.recorder.playing import recorded
from tests.recorder.rare_agents import denied_by_code_that_answers_for_all_calls, denied_while_it_runs


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


def test_code_that_overrules_a_decision_is_told_so():
    with pytest.raises(NothingObserved, match="decided on the call of pay_back after the replay had"):
        decided_by_code(denied_by_code_that_answers_for_all_calls().agent, {2: False}, "frozen")
