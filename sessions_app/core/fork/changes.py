"""The changes that a fork may make, and how they are written in JSON (docs: `POST /runs/{id}/forks`).

    {"kind": "instructions", "value": text}
    {"kind": "message", "step": 4, "index": 0, "value": text or whole message}
    {"kind": "tool_result", "step": 3, "value": any JSON} or {…, "error": text or {"type", "message"}}
    {"kind": "approval", "step": 3, "value": "approved" or "denied", "message": what the model is told of a denial}
    {"kind": "model_answer", "step": 2, "value": {"text", "tool_calls": [{"name", "arguments"}]}}
    {"kind": "state", "step": 2, "patch": [JSON Patch]}
    {"kind": "model", "value": {"model", "settings"}}
    {"kind": "clock", "value": ISO 8601 time, or seconds to shift it by}
    {"kind": "agent", "value": name of a registered agent}
    {"kind": "rule", "when": condition, "answer": {"text", "tool_calls"}}

Steps count from 1 and are those of the parent run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sessions_app.core.errors import ReplayProductError
from sessions_app.core.fork.conditions import Condition, ConditionError, read_condition
from sessions_app.core.payload import JsonObject, JsonValue


class ForkError(ReplayProductError):
    """A fork cannot be made as it was asked for; `field` is a JSON path such as `changes[0].step`."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedCall:
    """A tool call that an answer asks for."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a model says: a text, tool calls, or both."""

    text: str | None = None
    tool_calls: tuple[AskedCall, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFailure:
    """How a tool fails instead of answering."""

    message: str
    type: str | None = None
    crashes: bool = False
    """True ends the run with this error, as an exception of the tool does; else the model is told of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewInstructions:
    """Another system prompt, for every request from the fork's step on."""

    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMessage:
    """Another message in what a model step was sent; `index` counts from 0."""

    step: int
    index: int
    value: str | JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class NewToolResult:
    """Another answer of the tool at a step."""

    step: int
    value: JsonValue = None
    failure: ToolFailure | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewDecision:
    """What a person decides of a call that waited for an approval, in place of what was decided then."""

    step: int
    denial: str | None
    """What the model is told; None approves the call."""

    @property
    def outcome(self) -> str:
        return "approved" if self.denial is None else "denied"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewModelAnswer:
    """Another answer of the model at a step, written by hand."""

    step: int
    answer: Answer


@dataclass(frozen=True, kw_only=True, slots=True)
class NewState:
    """The state that a step begins with, changed by a JSON Patch (RFC 6902)."""

    step: int
    patch: tuple[JsonObject, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NewModel:
    """Another model, or other settings, from the fork's step on; None leaves them as they were."""

    model: str | None = None
    settings: JsonObject | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewClock:
    """Another time at the fork's step: a moment, or a shift of the recorded one."""

    at: datetime | None = None
    shift: timedelta | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewAgent:
    """The team's own code: an agent that the server's settings register under this name."""

    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """From the fork's step on: when the condition holds, the model answers this."""

    when: Condition
    answer: Answer


Change = (
    NewInstructions
    | NewMessage
    | NewToolResult
    | NewDecision
    | NewModelAnswer
    | NewState
    | NewModel
    | NewClock
    | NewAgent
    | Rule
)

MAX_CHANGES = 50
_DENIED = "The tool call was denied."
_MAX_SHIFT = 100 * 365 * 24 * 3600
_MAX_NUMBER = 999_999_999
_STEP_ID = re.compile(r"(step_)?[0-9]{1,9}")


def read_changes(items: JsonValue, *, field: str = "changes") -> tuple[Change, ...]:
    """Raises `ForkError` naming the field."""
    if not isinstance(items, list):
        raise ForkError("changes must be a list.", field=field)
    if len(items) > MAX_CHANGES:
        raise ForkError(f"A fork makes at most {MAX_CHANGES} changes.", field=field)
    return tuple(_read(item, f"{field}[{position}]") for position, item in enumerate(items))


def _read(item: JsonValue, field: str) -> Change:
    kind = item.get("kind") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind not in _READERS:
        raise ForkError(f"{field}.kind must be one of {', '.join(_READERS)}.", field=f"{field}.kind")
    refuse_others(item, ("kind", *_MEMBERS[kind]), field)
    return _READERS[kind](item, field)


def _instructions(item: JsonObject, field: str) -> Change:
    return NewInstructions(value=_text(item, "value", field))


def _message(item: JsonObject, field: str) -> Change:
    value = item.get("value")
    if not isinstance(value, str | dict):
        raise ForkError(f"{field}.value must be text or a whole message.", field=f"{field}.value")
    return NewMessage(step=_step(item, field), index=_number(item, "index", field, low=0), value=value)


def _tool_result(item: JsonObject, field: str) -> Change:
    step = _step(item, field)
    if ("value" in item) == (item.get("error") is not None):
        raise ForkError(f"{field} needs either value or error.", field=f"{field}.value")
    if "value" in item:
        return NewToolResult(step=step, value=item["value"])
    return NewToolResult(step=step, failure=read_failure(item["error"], f"{field}.error"))


def read_failure(error: JsonValue, field: str) -> ToolFailure:
    if isinstance(error, str) and error:
        return ToolFailure(message=error)
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        refuse_others(error, ("message", "type", "crashes"), field)
        kind, crashes = error.get("type"), error.get("crashes", False)
        if (kind is None or isinstance(kind, str)) and isinstance(crashes, bool):
            return ToolFailure(message=error["message"], type=kind, crashes=crashes)
    raise ForkError(f"{field} must be text or an object with message, type and crashes.", field=field)


def _approval(item: JsonObject, field: str) -> Change:
    value, message = item.get("value"), item.get("message")
    if value not in ("approved", "denied"):
        raise ForkError(f"{field}.value must be approved or denied.", field=f"{field}.value")
    if message is not None and (value == "approved" or not isinstance(message, str) or not message.strip()):
        raise ForkError(f"{field}.message must be text, and belongs to a denial.", field=f"{field}.message")
    return NewDecision(step=_step(item, field), denial=None if value == "approved" else message or _DENIED)


def _model_answer(item: JsonObject, field: str) -> Change:
    return NewModelAnswer(step=_step(item, field), answer=read_answer(item.get("value"), f"{field}.value"))


def read_answer(value: JsonValue, field: str) -> Answer:
    """`{"text", "tool_calls": [{"name", "arguments"}]}`; a bare text is an answer too."""
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict):
        raise ForkError(f"{field} must be an object with text, tool_calls or both.", field=field)
    refuse_others(value, ("text", "tool_calls"), field)
    text, calls = value.get("text"), value.get("tool_calls")
    if text is not None and not isinstance(text, str):
        raise ForkError(f"{field}.text must be text.", field=f"{field}.text")
    calls = [] if calls is None else calls
    if not isinstance(calls, list):
        raise ForkError(f"{field}.tool_calls must be a list.", field=f"{field}.tool_calls")
    if not text and not calls:
        raise ForkError(f"{field} needs a text, tool_calls or both.", field=field)
    asked = tuple(_asked_call(call, f"{field}.tool_calls[{position}]") for position, call in enumerate(calls))
    return Answer(text=text or None, tool_calls=asked)


def _asked_call(call: JsonValue, field: str) -> AskedCall:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not call["name"]:
        raise ForkError(f"{field}.name must be the name of a tool.", field=f"{field}.name")
    refuse_others(call, ("name", "arguments"), field)
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ForkError(f"{field}.arguments must be an object.", field=f"{field}.arguments")
    return AskedCall(name=call["name"], arguments=arguments)


def refuse_others(value: JsonObject, members: tuple[str, ...], field: str) -> None:
    """A misspelled member would otherwise be left out without a word: a call without its arguments, say."""
    other = next((name for name in value if name not in members), None)
    if other is not None:
        known = " and ".join((", ".join(members[:-1]), members[-1]))
        raise ForkError(f"{field} has {known}, and no {other!r}.", field=f"{field}.{other}")


def _state(item: JsonObject, field: str) -> Change:
    patch = item.get("patch")
    if not isinstance(patch, list) or not patch or not all(isinstance(operation, dict) for operation in patch):
        raise ForkError(f"{field}.patch must be a list of JSON Patch operations.", field=f"{field}.patch")
    return NewState(step=_step(item, field), patch=tuple(patch))


def _model(item: JsonObject, field: str) -> Change:
    changed = read_model(item.get("value"), f"{field}.value")
    if changed.model is None and changed.settings is None:
        raise ForkError(f"{field}.value needs a model, settings or both.", field=f"{field}.value")
    return changed


def read_model(value: JsonValue, field: str) -> NewModel:
    """A model's name, or `{"model", "settings"}`; what is left out stays as it was recorded."""
    if isinstance(value, str):
        value = {"model": value}
    if not isinstance(value, dict):
        raise ForkError(f"{field} must be the name of a model, or an object with model and settings.", field=field)
    refuse_others(value, ("model", "settings"), field)
    model, settings = value.get("model"), value.get("settings")
    if model is not None and not (isinstance(model, str) and model.strip()):
        raise ForkError(f"{field}.model must be the name of a model.", field=f"{field}.model")
    if settings is not None and not isinstance(settings, dict):
        raise ForkError(f"{field}.settings must be an object.", field=f"{field}.settings")
    return NewModel(model=model, settings=settings)


def _clock(item: JsonObject, field: str) -> Change:
    value = item.get("value")
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_SHIFT:
        return NewClock(shift=timedelta(seconds=value))
    return NewClock(at=_moment(value, f"{field}.value"))


def _moment(value: JsonValue, field: str) -> datetime:
    try:
        at = datetime.fromisoformat(value)
        at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        at = None
    if at is None or at.tzinfo is None:
        words = "must be an ISO 8601 time with offset, or a number of seconds to shift the clock by"
        raise ForkError(f"{field} {words}.", field=field)
    return at


def _agent(item: JsonObject, field: str) -> Change:
    return NewAgent(name=_text(item, "value", field))


def _rule(item: JsonObject, field: str) -> Change:
    try:
        when = read_condition(item.get("when"), root="result")
    except ConditionError as error:
        raise ForkError(error.message, field=f"{field}.when") from None
    return Rule(when=when, answer=read_answer(item.get("answer"), f"{field}.answer"))


_READERS: dict[str, Callable[[JsonObject, str], Change]] = {
    "instructions": _instructions,
    "message": _message,
    "tool_result": _tool_result,
    "approval": _approval,
    "model_answer": _model_answer,
    "state": _state,
    "model": _model,
    "clock": _clock,
    "agent": _agent,
    "rule": _rule,
}


_MEMBERS: dict[str, tuple[str, ...]] = {
    "instructions": ("value",),
    "message": ("step", "index", "value"),
    "tool_result": ("step", "value", "error"),
    "approval": ("step", "value", "message"),
    "model_answer": ("step", "value"),
    "state": ("step", "patch"),
    "model": ("value",),
    "clock": ("value",),
    "agent": ("value",),
    "rule": ("when", "answer"),
}


def _text(item: JsonObject, name: str, field: str) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ForkError(f"{field}.{name} must be text.", field=f"{field}.{name}")
    return value


def _number(item: JsonObject, name: str, field: str, *, low: int = 1) -> int:
    value = item.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= _MAX_NUMBER:
        raise ForkError(f"{field}.{name} must be a number from {low} on.", field=f"{field}.{name}")
    return value


def _step(item: JsonObject, field: str) -> int:
    return read_step(item.get("step"), f"{field}.step")


def read_step(value: JsonValue, field: str) -> int:
    """A number from 1 on, or a step's id such as `step_3`. Raises `ForkError`."""
    if isinstance(value, str) and _STEP_ID.fullmatch(value):
        value = int(value.removeprefix("step_"))
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MAX_NUMBER:
        raise ForkError(f"{field} must be a step's number, from 1 on.", field=field)
    return value
