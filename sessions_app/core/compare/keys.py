"""What a step asked and answered, and the short keys by which steps are aligned."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from sessions_app.core.compare.align import StepKey
from sessions_app.core.compare.strict import read_json_text
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import (
    ErrorInfo,
    ModelCall,
    Run,
    Step,
    answered,
    asked,
)

_SHAPE_DEPTH = 3


Digests = tuple[str | None, str | None]


@dataclass(kw_only=True, slots=True)
class KeyMaker:
    """Makes keys and remembers what it read, so that a payload met twice is read once."""

    _arguments: dict[str, Digests] = field(default_factory=dict)
    _answers: dict[str, Digests] = field(default_factory=dict)

    def keys(self, steps: Sequence[Step]) -> list[StepKey]:
        return [self.key(step) for step in steps]

    def key(self, step: Step) -> StepKey:
        arguments, shape = self._digests(step)
        result = answered(step)
        return StepKey(
            index=step.index,
            kind=step.kind,
            name=step.name,
            arguments_digest=arguments,
            shape_digest=shape,
            result_digest=None if result is None else result.digest,
            error=None if step.error is None else error_text(step.error),
            output_digest=_output_digest(step),
        )

    def _digests(self, step: Step) -> Digests:
        is_model = isinstance(step.call, ModelCall)
        payload = answered(step) if is_model else asked(step)
        if payload is None:
            return None, None
        known = self._answers if is_model else self._arguments
        if payload.digest not in known:
            known[payload.digest] = _decided(payload) if is_model else _arguments(payload)
        return known[payload.digest]


def step_keys(run: Run) -> list[StepKey]:
    return KeyMaker().keys(run.steps)


def spelled_key(step: Step) -> tuple[str, str, str | None]:
    """Equal ones mean equal keys, and nothing must be read for them."""
    is_model = isinstance(step.call, ModelCall)
    payload = answered(step) if is_model else asked(step)
    digest = None if payload is None else f"{payload.media_type} {payload.digest}"
    return step.kind, "" if is_model else step.name, digest


def error_text(error: ErrorInfo) -> str:
    return ": ".join(text for text in (error.type, error.message) if text) or "error"


def _output_digest(step: Step) -> str | None:
    output = step.call.output_history if isinstance(step.call, ModelCall) else None
    return None if output is None else output.digest


def _arguments(payload: Payload) -> Digests:
    value = _value(payload)
    return _digest(value) or payload.digest, _digest(shape(value))


def _decided(payload: Payload) -> Digests:
    """What a model answered: its texts and calls, without ids and times; and whom it called."""
    decision = decision_of(payload)
    if decision is None:
        return payload.digest, None
    return _digest(decision) or payload.digest, _digest([part.get("tool_name") for part in decision])


def decision_of(payload: Payload) -> list[JsonObject] | None:
    """The texts and calls of an answer, in order; None when it is no message with parts."""
    value = _value(payload)
    parts = value.get("parts") if isinstance(value, dict) else None
    if not isinstance(parts, list):
        return None
    parts = [part for part in parts if isinstance(part, dict)]
    return [part for part in map(_decided_part, parts) if part is not None]


def _decided_part(part: JsonObject) -> JsonObject | None:
    if "tool_name" in part:
        return {"tool_name": part["tool_name"], "args": as_fields(part.get("args"))}
    return {"content": part.get("content")} if part.get("part_kind") == "text" else None


def as_fields(value: JsonValue) -> JsonValue:
    """A text that spells an object or list, as that object or list."""
    read = read_json_text(value) if isinstance(value, str) else None
    return value if read is None else read


def _value(payload: Payload) -> JsonValue:
    try:
        return payload.parsed
    except (ValueError, RecursionError):
        return payload.as_text()


def shape(value: JsonValue, depth: int = _SHAPE_DEPTH) -> JsonValue:
    """Field names and types; a list is known by its first item."""
    if isinstance(value, dict):
        return {key: shape(item, depth - 1) for key, item in value.items()} if depth else "object"
    if isinstance(value, list):
        return [shape(item, depth - 1) for item in value[:1]] if depth else "list"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


def _digest(value: JsonValue) -> str | None:
    """Of one spelling of the value; None when it is nested too deep to spell."""
    try:
        text = _ENCODER.encode(value)
    except RecursionError:
        return None
    return hashlib.sha256(text.encode()).hexdigest()
