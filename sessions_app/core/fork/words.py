"""A change as one line of a patch: `model: gpt-4o → gpt-5, temperature 0 → 1`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import chain
from typing import Any

from sessions_app.core.errors import ReplayProductError
from sessions_app.core.fork.changes import (
    Answer,
    AskedCall,
    Change,
    NewAgent,
    NewClock,
    NewInstructions,
    NewMessage,
    NewModel,
    NewModelAnswer,
    NewState,
    NewToolResult,
    Rule,
    ToolFailure,
    read_changes,
)
from sessions_app.core.history import messages
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import ModelCall, Run, Step, ToolCall
from sessions_app.core.state import diff_state, input_state

LENGTH = 80
_NOTHING = object()
_MINUS = "\N{MINUS SIGN}"
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_SHOWN = 3
_MAX_COMPARED = 100_000
_CLOSING: dict[type, str] = {str: '"', list: "]", dict: "}"}


def describe(change: JsonObject, run: Run | None = None) -> str:
    """With the parent `run`, what was recorded stands before the arrow. A change that cannot be read is its kind."""
    try:
        (read,) = read_changes([change])
        return _line(_WRITERS[type(read)](read, run))
    except (ReplayProductError, ValueError):
        kind = change.get("kind") if isinstance(change, dict) else None
        return _line(_clipped(kind)) if isinstance(kind, str) and kind.strip() else "unknown change"


def _line(text: str) -> str:
    """Without line breaks, which only names, conditions and texts in single quotes may hold."""
    return " ".join(text.split()) if text.splitlines() != [text] else text


# --- kinds -------------------------------------------------------------------------------------


def _instructions(change: NewInstructions, run: Run | None) -> str:
    before = short(run.instructions) if run and run.instructions is not None else ""
    return f"instructions: {_arrow(before, short(change.value))}"


def _message(change: NewMessage, run: Run | None) -> str:
    before, after = _recorded_message(run, change), change.value
    is_text = isinstance(after, str)
    spelled = "" if before is None else short(_content(before) if is_text else before)
    return f"message {change.index} of step {change.step}: {_arrow(spelled, short(after))}"


def _tool_result(change: NewToolResult, run: Run | None) -> str:
    step = _step(run, change.step)
    call = step.call if step and isinstance(step.call, ToolCall) else None
    name = f"answer of {_clipped(call.tool_name)}" if call else "tool answer"
    if change.failure is not None:
        edit = _arrow(_recorded_answer(step), _failure(change.failure))
    else:
        fields = _changed_fields(call.result, change.value) if call else ""
        edit = fields or _arrow(_recorded_answer(step), short(change.value))
    return f"{name} at step {change.step}: {edit}"


def _recorded_answer(step: Step | None) -> str:
    call = step.call if step else None
    if step is None or not isinstance(call, ToolCall):
        return ""
    if call.result is None and step.error is not None:
        return _failure(ToolFailure(message=step.error.message or "", type=step.error.type))
    return _payload(call.result)


def _changed_fields(recorded: Payload | None, after: JsonValue) -> str:
    """The first edits, where an answer is too long to be shown and little of it changes; else nothing."""
    if not after or recorded is None or recorded.size > _MAX_COMPARED or "…" not in _payload(recorded):
        return ""
    before, edited = recorded.parsed, Payload.of_json(after).parsed
    if not isinstance(edited, dict | list) or type(before) is not type(edited):
        return ""
    edits = diff_state(before, edited)
    if len(edits) > _SHOWN and _payload(recorded) != short(after):
        return ""
    more = f" and {len(edits) - _SHOWN:,} more" if len(edits) > _SHOWN else ""
    return ", ".join(_operation(each, before) for each in edits[:_SHOWN]) + more


def _model_answer(change: NewModelAnswer, run: Run | None) -> str:
    step = _step(run, change.step)
    recorded = step.call.response if step and isinstance(step.call, ModelCall) else None
    before = "" if recorded is None else _response(recorded.value)
    return f"model answer at step {change.step}: {_arrow(before, _answer(change.answer))}"


def _state(change: NewState, run: Run | None) -> str:
    state = input_state(run, change.step) if run and _step(run, change.step) else _NOTHING
    state = _NOTHING if state is None else state
    return f"state at step {change.step}: {', '.join(_operation(each, state) for each in change.patch)}"


def _model(change: NewModel, run: Run | None) -> str:
    parts = [_arrow(_clipped(run.model) if run and run.model else "", _clipped(change.model))] if change.model else []
    recorded = _settings(run)
    for name, value in (change.settings or {}).items():
        before = short(recorded[name]) if name in recorded else ""
        parts.append(f"{_clipped(name)} {_arrow(before, short(value))}")
    return f"model: {', '.join(parts) or 'no settings'}"


def _clock(change: NewClock, run: Run | None) -> str:
    if change.shift is not None:
        return f"clock: {_seconds(change.shift)} s"
    return f"clock: → {change.at.isoformat() if change.at else ''}"


def _agent(change: NewAgent, run: Run | None) -> str:
    return f"own code: {_clipped(change.name)}"


def _rule(change: Rule, run: Run | None) -> str:
    return f"rule: when {change.when.text}, answer {_answer(change.answer)}"


_WRITERS: dict[type[Change], Callable[[Any, Run | None], str]] = {
    NewInstructions: _instructions,
    NewMessage: _message,
    NewToolResult: _tool_result,
    NewModelAnswer: _model_answer,
    NewState: _state,
    NewModel: _model,
    NewClock: _clock,
    NewAgent: _agent,
    Rule: _rule,
}


# --- parts -------------------------------------------------------------------------------------


def _operation(operation: JsonObject, state: JsonValue) -> str:
    op, path = operation.get("op"), _dotted(operation.get("path"))
    if op == "remove":
        return f"{_MINUS}{path}"
    if op in ("move", "copy"):
        return f"+{path} ({op} of {_dotted(operation.get('from'))})"
    value = short(operation.get("value"))
    if op == "replace":
        return f"~{path} {_arrow(_spelled_at(state, operation.get('path')), value)}"
    return f"+{path} {value}" if op == "add" else f"{_clipped(str(op))} {path} = {value}"


def _dotted(pointer: JsonValue) -> str:
    """`/orders/0/status` as `orders.0.status`; the whole state is called so."""
    return _clipped(".".join(_segments(pointer))) or "state"


def _spelled_at(state: JsonValue, pointer: JsonValue) -> str:
    """The value at a JSON Pointer; nothing where there is none."""
    for segment in _segments(pointer):
        if isinstance(state, list) and segment.isdecimal() and len(segment) < 10:
            state = next(iter(state[int(segment) :]), _NOTHING)
        else:
            state = state.get(segment, _NOTHING) if isinstance(state, dict) else _NOTHING
    return "" if state is _NOTHING else short(state)


def _segments(pointer: JsonValue) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in str(pointer or "").split("/")[1:]]


def _answer(answer: Answer) -> str:
    calls = map(_asked, answer.tool_calls)
    return ", ".join(chain([] if answer.text is None else [short(answer.text)], calls))


def _asked(call: AskedCall) -> str:
    return f"{_clipped(call.name)}({short(call.arguments)})"


def _response(message: JsonValue) -> str:
    """What a recorded answer says: its texts and its calls."""
    return ", ".join(_said(part) for part in _parts(message) if part.get("part_kind") in ("text", "tool-call"))


def _said(part: JsonObject) -> str:
    if part["part_kind"] == "text":
        return short(part.get("content"))
    arguments = part.get("args")
    spelled = _clipped(arguments) if isinstance(arguments, str) else short(arguments or {})
    return f"{_clipped(str(part.get('tool_name')))}({spelled})"


def _content(message: JsonValue) -> JsonValue:
    """The text that a changed message takes the place of."""
    contents = [part.get("content") for part in _parts(message)]
    return contents[0] if len(contents) == 1 else contents


def _parts(message: JsonValue) -> list[JsonObject]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _failure(failure: ToolFailure) -> str:
    words = ": ".join(_clipped(part) for part in (failure.type, failure.message) if part)
    return f"error {words}".strip() + (" (ends the run)" if failure.crashes else "")


def _seconds(shift: timedelta) -> str:
    seconds = shift.total_seconds()
    return f"{_MINUS if seconds < 0 else '+'}{abs(seconds):,.6f}".rstrip("0").rstrip(".")


def _arrow(before: str, after: str) -> str:
    return f"{before} → {after}".lstrip()


# --- what was recorded -------------------------------------------------------------------------


def _step(run: Run | None, index: int) -> Step | None:
    return run.steps[index - 1] if run and index <= len(run.steps) else None


def _recorded_message(run: Run | None, change: NewMessage) -> JsonValue:
    step = _step(run, change.step)
    sent = messages(step.call.history) if step and isinstance(step.call, ModelCall) else []
    return sent[change.index].value if change.index < len(sent) else None


def _settings(run: Run | None) -> JsonObject:
    recorded: Iterable[Payload] = (call.settings for _, call in run.model_calls if call.settings) if run else ()
    first = next(iter(recorded), None)
    return first.parsed if first and isinstance(first.parsed, dict) else {}


def _payload(payload: Payload | None) -> str:
    is_readable = payload is not None and (payload.is_json or payload.is_text)
    return short(payload.value) if payload and is_readable else ""


# --- cutting -----------------------------------------------------------------------------------


def short(value: JsonValue, length: int = LENGTH) -> str:
    """JSON on one line; what is long is cut in its middle and closed: `[{"order": …]`.

    A text that holds JSON, whole or broken off, stands in single quotes and without escapes.
    """
    if isinstance(value, str) and value.startswith(("{", "[")):
        return f"'{_clipped(_line(value[: 4 * length]), length - 2)}'"
    text = ""
    for piece in _ENCODER.iterencode(value[: length + 1] if isinstance(value, str) else value):
        text += piece
        if len(text) > length:
            closing = _CLOSING.get(type(value), "")
            return f"{text[: length - 1 - len(closing)]}…{closing}"
    return text


def _clipped(text: str, length: int = LENGTH) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
