"""Replays with a team's own agent, in this process: for what is not about the process around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sessions_app.agents.clock import PinnedClock
from sessions_app.agents.gate import Ask
from sessions_app.agents.own_agent import replay_with_own_agent
from sessions_app.agents.registry import OwnAgent
from sessions_app.core.fork.order import ToolPolicy
from sessions_app.core.fork.stops import Stops
from sessions_app.core.formats.native import parse_native
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.observed import Result
from sessions_app.core.run import Run
from tests.recorder.playing import recorded
from tests.recorder.scenarios import Play


def never_asked(question: JsonObject) -> JsonObject:
    raise AssertionError(question)


def replayed_by(
    run: Run, own: OwnAgent, *, ask: Ask = never_asked, stops: Stops | None = None, **policy: Any
) -> Result:
    """`live` and `write` name tools, as an order does."""
    clock = PinnedClock(run.started_at)
    tools = ToolPolicy(**{name: frozenset(names) for name, names in policy.items()})

    def on_progress(done: int, total: int) -> None:
        assert done <= total

    replay = replay_with_own_agent(run, own, tools=tools, ask=ask, on_progress=on_progress, clock=clock, stops=stops)
    try:
        return asyncio.run(replay)
    finally:
        clock.release()


def own(play: Play) -> OwnAgent:
    """The agent alone; what else a run was started with is in its record."""
    kept = {name: value for name, value in play.arguments.items() if name == "output_type"}
    return OwnAgent(agent=play.agent, arguments=kept)


def recorded_run(make: Callable[[], Play], way: str = "run") -> Run:
    """The run of this agent, and not of those inside of it."""
    play = make()
    runs = [parse_native(record) for record in recorded(play, way)]
    return next((run for run in runs if run.agent.name == play.agent.name), runs[-1])
