"""Replays with a team's own agent, in this process: for what is not about the process around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from replay_recorder.replaying.observing import Replay, observe
from replay_recorder.replaying.own_agent import OwnAgent as LocalAgent
from replay_recorder.replaying.recording import read_recording
from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.own_code.agent import replay_with_own_agent
from sessions_app.agents.own_code.fork import fork_with_own_agent
from sessions_app.agents.own_code.gate import Ask
from sessions_app.agents.own_code.live_tools import run_tool
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.fork.order import Course, OnDifference, Order, ToolPolicy
from sessions_app.core.fork.stops import Stops
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.payload import JsonObject, compact_json
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.observed_pairs import Tools
from sessions_app.core.replay.own_machine import judge_observed
from sessions_app.core.replay.produce import produced_run
from sessions_app.core.run import Run
from tests.recorder.playing import recorded
from tests.recorder.scenarios import Play


def run_here(own: OwnAgent) -> Ask:
    """Live tools in this process, in a thread, for the loop has this one. What is said goes through JSON as usual."""

    def ask(question: JsonObject) -> JsonObject:
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(run_tool, own, json.loads(compact_json(question))).result()
        return dict(json.loads(compact_json(answer)))

    return ask


def never_asked(question: JsonObject) -> JsonObject:
    raise AssertionError(question)


def replayed_by(
    run: Run,
    own: OwnAgent,
    *,
    ask: Ask | None = None,
    stops: Stops | None = None,
    live: Iterable[str] = (),
    runs_tools: bool = False,
    on_difference: OnDifference = "stop",
    progress: list[tuple[int, int]] | None = None,
) -> Result:
    """`live` names tools, as an order does. They run in this process unless `ask` does otherwise. `progress` takes the
    steps that were done and their number."""
    tools = ToolPolicy(run=runs_tools, live=frozenset(live))
    order = Order(tools=tools, on_difference=on_difference)
    ask = ask or (run_here(own) if tools.live else never_asked)
    clock = PinnedClock(run.started_at)

    def on_progress(done: int, total: int) -> None:
        assert done <= total
        if progress is not None:
            progress.append((done, total))

    replay = replay_with_own_agent(run, own, order=order, ask=ask, on_progress=on_progress, clock=clock, stops=stops)
    try:
        return asyncio.run(replay)
    finally:
        clock.release()


def own(play: Play) -> OwnAgent:
    """The agent alone; what else a run was started with is in its record."""
    kept = {name: value for name, value in play.arguments.items() if name == "output_type"}
    return OwnAgent(agent=play.agent, arguments=kept)


def recorded_run(make: Callable[[], Play], way: str = "run", **settings: Any) -> Run:
    """The run of this agent, and not of those inside of it."""
    play = make()
    runs = [parse_native(record) for record in recorded(play, way, **settings)]
    return next((run for run in runs if run.agent.name == play.agent.name), runs[-1])


def forked_by(run: Run, own: OwnAgent, order: Order, *, ask: Ask = lambda question: None) -> Result:
    """A fork with the team's own agent; nothing outside of the run knows an answer unless `ask` does."""
    return fork_made_by(run, own, order, ask=ask)[0]


def fork_made_by(
    run: Run, own: OwnAgent, order: Order, course: Course | None = None, *, ask: Ask = lambda question: None
) -> tuple[Result, Run | None]:
    """The same with the run that it made."""
    clock = PinnedClock(run.started_at)
    fork = fork_with_own_agent(
        run, "forked", own, order, course or Course(), ask=ask, on_progress=lambda done, total: None, clock=clock
    )
    try:
        return asyncio.run(fork)
    finally:
        clock.release()


def observed_by(run: Run, play: Play, *, tools: Tools = "frozen") -> Result:
    """What the server makes of a replay on a person's own machine, which runs here."""
    return observed_with_run(run, play, tools=tools)[0]


def observed_with_run(run: Run, play: Play, *, tools: Tools = "frozen") -> tuple[Result, Run | None]:
    kept = {name: value for name, value in play.arguments.items() if name == "output_type"}
    recording = read_recording(json.loads(encode_native(run)))
    observed = observe(Replay(recording, LocalAgent(agent=play.agent, arguments=kept), tools=tools))
    return judge_observed(run, parse_native(observed), tools=tools, run_id="observed-1")


def places_of_comparison(run: Run, own_agent: OwnAgent, play: Play) -> list[tuple[int, str] | None]:
    """Where a comparison of the recording with its replay finds the first difference: with the server's replay, whose
    tools run, and with that on a person's own machine."""
    seen = replayed_by(run, own_agent, runs_tools=True).observations
    assert seen is not None
    observed = observed_with_run(run, play, tools="run")[1]
    assert observed is not None
    made = [produced_run(run, seen, run_id="produced-1"), observed]
    found = [compare_runs(run, each).divergence for each in made]
    return [None if each is None else (each.left_step.index if each.left_step else 0, each.path) for each in found]


def place(result: Result) -> tuple[str, int | None, str | None]:
    """The verdict, and where the first difference is."""
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)
