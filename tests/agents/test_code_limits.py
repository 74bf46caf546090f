"""Limits of usage that a team's own agent is registered with, in place of the recorded ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import Agent, UsageLimits

from replay_recorder.replaying.observing import Replay, observe
from replay_recorder.replaying.own_agent import OwnAgent as LocalAgent
from replay_recorder.replaying.recording import read_recording
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.own_machine import judge_observed
from sessions_app.core.run import Run
from tests.agents.own_agents import recorded_run, replayed_by
from tests.recorder.scenarios import Play, Scripted, call, says


def played(then: UsageLimits | None = None) -> Play:
    agent = Agent(Scripted(says(call("look", {}, "1")), says("Done.")), name="agent")

    @agent.tool_plain
    def look() -> str:
        """Look."""
        return "found"

    return Play(agent, "Look it up.", **({} if then is None else {"usage_limits": then}))


def code(run: Run, limits: dict[str, Any]) -> Result:
    return replayed_by(run, OwnAgent(agent=played().agent, arguments=limits))


def code_and_tools(run: Run, limits: dict[str, Any]) -> Result:
    return replayed_by(run, OwnAgent(agent=played().agent, arguments=limits), runs_tools=True)


def own_machine(run: Run, limits: dict[str, Any]) -> Result:
    own = LocalAgent(agent=played().agent, arguments=limits)
    observed = observe(Replay(read_recording(json.loads(encode_native(run))), own, tools="frozen"))
    return judge_observed(run, parse_native(observed), tools="frozen", run_id="observed-1")[0]


@pytest.mark.parametrize("then", [None, UsageLimits(request_limit=9)])
@pytest.mark.parametrize("replay", [code, code_and_tools, own_machine])
def test_registered_limits_are_those_of_the_replay(replay: Any, then: UsageLimits | None):
    run = recorded_run(lambda: played(then))
    strict = replay(run, {"usage_limits": UsageLimits(request_limit=1)})

    assert replay(run, {}).verdict == "reproduced"
    assert replay(run, {"usage_limits": UsageLimits(request_limit=2)}).verdict == "reproduced"
    assert (strict.verdict, strict.error) == ("diverged", None)
    assert strict.divergence is not None
    assert "request_limit of 1" in str(strict.divergence.replayed)
