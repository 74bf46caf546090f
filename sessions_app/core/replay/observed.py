"""What a replay saw and what came of it. Plain data: it crosses from the child process as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.asked_model import AskedModel
from sessions_app.core.run import ErrorInfo, StateChange, StepSource, ToolCall

States = Literal["carried", "taken", "changed", "unknown"]
"""Carried over from the recording, taken from the team's own code after each step, taken from code that began with a
state which a fork changed, or not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """The first step and field where recording and replay stop agreeing."""

    step: int | None
    path: str
    recorded: JsonValue
    replayed: JsonValue


def absent_side(left: object, right: object) -> JsonObject:
    """The fact that one side of a difference has no such place, which as a value would be null; empty where both do."""
    sides = {"recorded": left, "replayed": right}
    return next(({"absent": name} for name, value in sides.items() if value is MISSING), {})


@dataclass(frozen=True, kw_only=True, slots=True)
class StateLeft:
    """The state of the team's own agent when a request or a call had ended."""

    order: int
    """How many had ended before it."""
    value: JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedRequest:
    """A request to the model as the loop built it."""

    step: int | None
    """The recorded model step that it stands for; None past the recording's end."""
    history: History | None
    parameters: Payload
    response: Payload | None
    """What the loop took as the answer; None when none came."""
    source: StepSource = "recorded"
    link: JsonObject | None = None
    """For a borrowed answer: the run and step that it was recorded in."""
    error: ErrorInfo | None = None
    state: StateChange | None = None
    left: StateLeft | None = None
    """The whole state behind it, where that was taken."""
    asked: AskedModel | None = None
    """What the team's code sends it to; None where that was taken from the recording."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedCall:
    """A tool call of the loop."""

    step: int
    """The recorded step whose answer it got; 0 for an answer that is not of this recording."""
    call_id: str | None
    tool_name: str
    arguments: Payload
    source: StepSource = "recorded"
    link: JsonObject | None = None
    answer: ToolCall | None = None
    """What the tool gave, where it is not the recorded answer of `step`; None when nothing was given."""
    error: ErrorInfo | None = None
    state: StateChange | None = None
    left: StateLeft | None = None
    """The whole state that it left behind, where that was taken."""
    given: JsonObject | None = None
    """What is to be said of the arguments that came to the tool (`core/replay/ran_with.py`); None where none was heard
    of."""
    told: JsonObject = field(default_factory=dict)
    """`tool_ran` and `waits_with`, as the recorder says them of a call that did not simply get its tool's answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observations:
    """All that the loop did."""

    requests: tuple[ObservedRequest, ...]
    calls: tuple[ObservedCall, ...]
    final: History | None
    output: Payload | None
    error: ErrorInfo | None
    open_calls: Mapping[str, str | None] | None = None
    """What the calls wait for that the loop stopped at, by id: an approval, or a result from outside."""
    states: States = "carried"
    """Where the states of the produced run come from."""
    first_state: JsonValue = None
    """What the code found, where its states were taken."""
    hooks_not_run: tuple[str, ...] = ()
    """Hooks of the team's code that stand behind tools whose recorded answers were given."""
    hears_arguments: bool = False
    """Code of the team's stood in front of the tools, and was heard."""
    has_run_tools: bool = False
    """The tools of the team's own agent ran, functions that make its output among them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The outcome of a replay."""

    verdict: str
    """`reproduced`, `diverged`, `ran_past_recording`, `answers_left_over`, `fixture_missing`,
    `could_not_run`, `unknown_from_step`; `paused` for one that goes on later, and `observed` for a run that is still to
    be judged."""
    divergence: Divergence | None = None
    facts: JsonObject = field(default_factory=dict)
    observations: Observations | None = None
    error: str | None = None
    stopped: JsonObject | None = None
    """The stop at which it waits, paused or without an answer (`core.fork.stops.Stopped`)."""


Replayed = tuple[Result, bytes | None]
"""The second is the produced run as a native record; None when the loop never began."""
