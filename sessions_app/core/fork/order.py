"""What a replay was asked to do, and what people said while it went on. Both are stored and sent as JSON.

    order  {"at_step", "changes", "hypothesis", "expect", "agent", "tools": {"run": bool, "live": [name]},
            "on_difference": "stop" | "play_on" | "live", "breakpoints": [{"step"} | {"tool"} | {"when"}], "samples",
            "live_model"}
    course {"answers": [{"at", "asked", …}], "passed", "is_stepping"}

The order never changes once it was given. A replay that was stopped runs again from its beginning, which gives the same
again, and the course says how far it had come and which answers it was given by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sessions_app.core.fork.changes import (
    Answer,
    Change,
    ForkError,
    NewAgent,
    NewState,
    ToolFailure,
    read_answer,
    read_changes,
    read_failure,
    read_step,
)
from sessions_app.core.fork.conditions import Condition, ConditionError, read_condition
from sessions_app.core.fork.expectations import Expectation, read_expectation
from sessions_app.core.payload import JsonObject, JsonValue

MAX_BREAKPOINTS = 50
MAX_SAMPLES = 100
_MAX_WORDS = 2000
NOT_FOUND = ToolFailure(message="Not found.")


OnDifference = Literal["stop", "play_on", "live"]
"""What a request to the model is given that is another one than was recorded: nothing; the recorded answer of its
place, which is then labelled as one for another request; or what a live model answers."""
_ON_DIFFERENCE: tuple[OnDifference, ...] = ("stop", "play_on", "live")


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakpoint:
    """Where to pause: before a step, before calls of a tool, or whenever a condition holds."""

    step: int | None = None
    tool: str | None = None
    when: Condition | None = None

    @property
    def words(self) -> str:
        if self.step is not None:
            return f"step {self.step}"
        return f"tool {self.tool}" if self.tool is not None else (self.when.text if self.when else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolPolicy:
    """Which tools of the team's own code may run. All others are frozen."""

    run: bool = False
    """Every tool runs as its own function, in the sealed process."""
    live: frozenset[str] = frozenset()
    """Tools that only read; they run where there is a network."""

    @property
    def any_runs(self) -> bool:
        return self.run or bool(self.live)


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """A replay as it was asked for. Without `at_step` nothing is changed."""

    at_step: int | None = None
    changes: tuple[Change, ...] = ()
    hypothesis: str = ""
    expect: Expectation | None = None
    agent: str | None = None
    """Name of the registered agent whose code runs; None for a rebuilt agent."""
    tools: ToolPolicy = ToolPolicy()
    on_difference: OnDifference = "stop"
    breakpoints: tuple[Breakpoint, ...] = ()
    samples: int | None = None
    live_model: str | None = None
    """Name of the connected model that is asked; None for that of the server's environment."""

    @property
    def is_fork(self) -> bool:
        return self.at_step is not None

    @property
    def changes_state(self) -> bool:
        return any(isinstance(change, NewState) for change in self.changes)

    @property
    def asks_live_model(self) -> bool:
        """Every request of each sample, or those that are others than were recorded."""
        return self.samples is not None or self.on_difference == "live"


@dataclass(frozen=True, kw_only=True, slots=True)
class HandAnswer:
    """An answer that somebody gave to what a replay asked for at its stop number `at`."""

    at: int
    asked: str
    """Key of what was asked for; the answer serves nothing else."""
    value: JsonValue = None
    failure: ToolFailure | None = None
    answer: Answer | None = None
    """For a model's request, instead of a value."""
    twin: JsonObject | None = None
    """The recorded call whose answer it is: run_id and step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """How far a replay has come, for the next time that it runs."""

    answers: tuple[HandAnswer, ...] = ()
    passed: int = 0
    """Number of the stop that it goes on from; it does not pause at this one or those before it."""
    is_stepping: bool = False
    """Pause at the next stop, whether there is a breakpoint or not."""


def read_order(value: JsonObject) -> Order:
    """Raises `ForkError` naming the field. What only a fork needs is asked for with `at_step`."""
    changes, at_step = read_changes(_given(value, "changes", [])), value.get("at_step")
    agents = [change.name for change in changes if isinstance(change, NewAgent)]
    return Order(
        at_step=None if at_step is None else read_step(at_step, "at_step"),
        changes=changes,
        hypothesis=_words(value.get("hypothesis"), "hypothesis"),
        expect=None if value.get("expect") is None else read_expectation(value["expect"]),
        agent=agents[-1] if agents else _name(value.get("agent"), "agent"),
        tools=_policy(_given(value, "tools", {})),
        on_difference=_on_difference(_given(value, "on_difference", "stop")),
        breakpoints=read_breakpoints(_given(value, "breakpoints", [])),
        samples=None if value.get("samples") is None else _samples(value["samples"]),
        live_model=_name(value.get("live_model"), "live_model"),
    )


def read_breakpoints(items: JsonValue, *, field: str = "breakpoints") -> tuple[Breakpoint, ...]:
    if not isinstance(items, list) or len(items) > MAX_BREAKPOINTS:
        raise ForkError(f"{field} must be a list of at most {MAX_BREAKPOINTS}.", field=field)
    return tuple(_breakpoint(item, f"{field}[{position}]") for position, item in enumerate(items))


def read_course(value: JsonObject) -> Course:
    """As this server wrote it."""
    return Course(
        answers=tuple(_hand_answer(item) for item in value.get("answers") or []),
        passed=value.get("passed") or 0,
        is_stepping=bool(value.get("is_stepping")),
    )


def _hand_answer(item: JsonObject) -> HandAnswer:
    failure = NOT_FOUND if item.get("not_found") else None
    if item.get("error") is not None:
        failure = read_failure(item["error"], "error")
    answer = read_answer(item["answer"], "answer") if item.get("answer") is not None else None
    return HandAnswer(
        at=item["at"],
        asked=item["asked"],
        value=item.get("value"),
        failure=failure,
        answer=answer,
        twin=item.get("twin"),
    )


def _breakpoint(item: JsonValue, field: str) -> Breakpoint:
    if isinstance(item, dict) and len(item) == 1:
        if "step" in item:
            return Breakpoint(step=read_step(item["step"], f"{field}.step"))
        if isinstance(item.get("tool"), str) and item["tool"]:
            return Breakpoint(tool=item["tool"])
        if "when" in item:
            return Breakpoint(when=_condition(item["when"], f"{field}.when"))
    raise ForkError(f"{field} must be an object with one of step, tool, when.", field=field)


def _condition(text: JsonValue, field: str) -> Condition:
    try:
        return read_condition(text, root="args")
    except ConditionError as error:
        raise ForkError(error.message, field=field) from None


def _policy(value: JsonValue) -> ToolPolicy:
    if not isinstance(value, dict):
        raise ForkError("tools must be an object with run, true or false, and live, a list of names.", field="tools")
    run = _given(value, "run", False)
    if not isinstance(run, bool):
        raise ForkError("tools.run must be true or false.", field="tools.run")
    return ToolPolicy(run=run, live=_names(value, "live"))


def _on_difference(value: JsonValue) -> OnDifference:
    for known in _ON_DIFFERENCE:
        if value == known:
            return known
    raise ForkError(f"on_difference must be one of {', '.join(_ON_DIFFERENCE)}.", field="on_difference")


def _names(value: JsonObject, name: str) -> frozenset[str]:
    names = _given(value, name, [])
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise ForkError(f"tools.{name} must be a list of names.", field=f"tools.{name}")
    return frozenset(names)


def _given(value: JsonObject, name: str, default: JsonValue) -> JsonValue:
    """Only null stands for nothing; an empty text or a zero is a mistake."""
    found = value.get(name)
    return default if found is None else found


def _words(value: JsonValue, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _MAX_WORDS:
        raise ForkError(f"{field} must be text of at most {_MAX_WORDS} characters.", field=field)
    return value.strip()


def _name(value: JsonValue, field: str) -> str | None:
    if value is not None and not (isinstance(value, str) and value):
        raise ForkError(f"{field} must be a name.", field=field)
    return value


def _samples(value: JsonValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_SAMPLES:
        raise ForkError(f"samples must be a number from 1 to {MAX_SAMPLES}.", field="samples")
    return value
