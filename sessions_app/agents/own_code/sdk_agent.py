"""Agents of the OpenAI Agents SDK in the sealed process, by the recorder's own loop, which replays them on a person's
machine as well.

What the agent did is observed, and judged where secrets can be taken out of it first: by the parent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from replay_recorder.replaying.errors import ReplayPaused
from replay_recorder.replaying.observing import NothingObserved, Replay, observe
from replay_recorder.replaying.own_agent import CannotLoadAgent
from replay_recorder.replaying.own_agent import OwnAgent as ObservedAgent
from replay_recorder.replaying.recording import read_recording
from replay_recorder.replaying.stops import Stops as Watched
from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.recording_replay import Progress, Ticker
from sessions_app.agents.loop.stage import model_stop, tool_stop
from sessions_app.agents.own_code.recorded_http import refuse
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.fork.order import Order, read_course, read_order
from sessions_app.core.fork.stops import Stop, Stopped, Stops
from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge_code
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.ending import cannot_begin
from sessions_app.core.replay.observed import Replayed, Result
from sessions_app.core.replay.parts import NOT_WITH_SDK
from sessions_app.core.replay.plan import ReplayPlan, make_plan

_ENDS_FOR_LIMITS = ("MemoryError", "WorldIsOff")
"""Errors that the process makes, and not the agent."""


def replay_with_sdk(request: JsonObject, own: OwnAgent, on_progress: Progress) -> Replayed:
    """The result is `observed`, with the observed run as its record, or says why there is none."""
    order, course = read_order(request.get("order") or {}), read_course(request.get("course") or {})
    run = parse_native(request["record"].encode())
    judged = judge_code(run, runs_tools=order.tools.run)
    if judged.verdict == "cold":
        return cannot_begin(judged), None
    if order.is_fork or order.tools.live:
        return Result(verdict="could_not_run", error=NOT_WITH_SDK), None
    clock = PinnedClock(run.started_at)
    course_of_stops = _Course(make_plan(run), Stops(order.breakpoints, course), clock, on_progress)
    try:
        record = observe(_replay(request, own, order, course_of_stops))
    except (NothingObserved, CannotLoadAgent, ValueError) as error:
        return Result(verdict="could_not_run", error=str(error)), None
    finally:
        clock.release()
    limit = _error_of_limit(record)
    if limit is not None:
        return Result(verdict="could_not_run", error=limit), None
    stopped = course_of_stops.stopped.to_json() if course_of_stops.stopped else None
    return Result(verdict="observed", facts={"clock": clock.told}, stopped=stopped), record


def _replay(request: JsonObject, own: OwnAgent, order: Order, course: _Course) -> Replay:
    return Replay(
        recording=read_recording(json.loads(request["record"])),
        own=ObservedAgent(own.agent, own.deps, own.arguments, own.deps_of_state, own.state_of_deps),
        tools="run" if order.tools.run else "frozen",
        on_difference="play_on" if order.on_difference == "play_on" else "stop",
        stops=Watched(reached_model=course.reached_model, reached_call=course.reached_call),
        refuse=refuse,
        inner={run_id: read_recording(json.loads(text)) for run_id, text in (request.get("inner") or {}).items()},
        code={},  # git is a program, and the parent knows the commit
    )


def _error_of_limit(record: bytes) -> str | None:
    """The error that ended the run, where the process itself made it. The SDK puts errors of tools into other words,
    and their steps keep what they were."""
    observed = json.loads(record)
    if not observed.get("error"):
        return None
    of_step = (observed.get("steps") or [{}])[-1].get("error") or {}
    errors = (observed["error"], of_step, of_step.get("cause") or {})
    made = next((each for each in errors if each.get("type") in _ENDS_FOR_LIMITS), None)
    return None if made is None else f"{made['type']}: {made.get('message')}"


class _Course:
    """Stands at each request and call of the loop: moves the clock, tells of the progress, and pauses."""

    def __init__(self, plan: ReplayPlan, stops: Stops, clock: PinnedClock, on_progress: Progress) -> None:
        self._plan = plan
        self._stops = stops
        self._clock = clock
        self._ticker = Ticker(plan.total, on_progress)
        self._answers = {answer.step: answer for answer in plan.answers}
        self._calls = [(step.index, call) for step, call in plan.run.tool_calls]
        self._last = 0
        self.stopped: Stopped | None = None

    def reached_model(self, step: int) -> None:
        self._pause(model_stop(self._answers[step]))
        self._go_on(step)

    def reached_call(self, name: str, call_id: str | None, arguments: Mapping[str, Any]) -> None:
        step = self._step_of(name, call_id)
        self._pause(tool_stop(step or self._last, name, call_id, dict(arguments)))
        if step is not None:
            self._go_on(step)

    def _step_of(self, name: str, call_id: str | None) -> int | None:
        """Ids may come again, so each recorded call is taken once; None for one that was never recorded."""
        for place, (step, call) in enumerate(self._calls):
            if (call.call_id, call.tool_name) == (call_id, name):
                del self._calls[place]
                return step
        return None

    def _pause(self, stop: Stop) -> None:
        """Calls of one answer come beside each other; the first that pauses is where it goes on."""
        self.stopped = self.stopped or self._stops.reach(stop)
        if self.stopped is not None:
            raise ReplayPaused(f"Stopped before {stop.name}.")

    def _go_on(self, step: int) -> None:
        self._last = step
        self._clock.move_to(self._plan.run.steps[step - 1].started_at)
        self._ticker.step()
