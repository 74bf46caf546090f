"""Where a replay may pause. Each model request and each tool call is a stop; they are numbered from 1 as they come.

A replay runs the same way each time, so the number of a stop is enough to find it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sessions_app.core.fork.order import Breakpoint, Course
from sessions_app.core.payload import JsonObject, JsonValue

Why = Literal["breakpoint", "step", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """What is about to be answered."""

    kind: Literal["model", "tool"]
    step: int
    """Its step in the run that the replay makes; of a recording replay, in the recording."""
    name: str
    asked: str
    """Key of what is asked for: hex SHA-256."""
    messages: int = 0
    """How many messages there are before it."""
    call_id: str | None = None
    arguments: JsonValue = None
    seen: JsonObject = field(default_factory=dict)
    """What conditions look at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopped:
    """A replay that waits at a stop, and why."""

    at: int
    stop: Stop
    why: Why
    breakpoint: str | None = None

    def to_json(self) -> JsonObject:
        stop = self.stop
        return {
            "at": self.at,
            "asked": stop.asked,
            "kind": stop.kind,
            "step": stop.step,
            "name": stop.name,
            "call_id": stop.call_id,
            "arguments": stop.arguments,
            "messages": stop.messages,
            "why": self.why,
            "breakpoint": self.breakpoint,
        }


class Stops:
    """Counts the stops of a replay and says at which of them it pauses."""

    def __init__(self, breakpoints: tuple[Breakpoint, ...] = (), course: Course | None = None) -> None:
        self._breakpoints = breakpoints
        self._course = course or Course()
        self.at = 0

    def reach(self, stop: Stop) -> Stopped | None:
        """None goes on. A stop that was passed before does not pause again."""
        self.at += 1
        if self.at <= self._course.passed:
            return None
        if self._course.is_stepping:
            return Stopped(at=self.at, stop=stop, why="step")
        hit = next((each for each in self._breakpoints if _matches(each, stop)), None)
        return None if hit is None else Stopped(at=self.at, stop=stop, why="breakpoint", breakpoint=hit.words)

    def unknown(self, stop: Stop) -> Stopped:
        """The stop that was reached last has no answer."""
        return Stopped(at=self.at, stop=stop, why="unknown")


def _matches(point: Breakpoint, stop: Stop) -> bool:
    if point.step is not None:
        return stop.step == point.step
    if point.tool is not None:
        return stop.kind == "tool" and stop.name == point.tool
    return point.when is not None and point.when.holds(stop.seen)
