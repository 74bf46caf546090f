"""A change as one line of a patch: `model: gpt-4o → gpt-5, temperature 0 → 1`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from sessions_app.core.clipping import clipped
from sessions_app.core.errors import ReplayProductError
from sessions_app.core.fork.changes import (
    Answer,
    AskedCall,
    Change,
    NewAgent,
    NewClock,
    NewDecision,
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
from sessions_app.core.fork.spelling import MINUS, NOTHING, arrow, listed, one_line, operation_words, short
from sessions_app.core.history import messages
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import ModelCall, Run, Step, ToolCall
from sessions_app.core.state import diff_state, input_state

_SHOWN = 3
_MAX_COMPARED = 100_000


def describe(change: JsonObject, run: Run | None = None) -> str:
    """With the parent `run`, what was recorded stands before the arrow. A change that cannot be read is its kind."""
    try:
        (read,) = read_changes([change])
        return one_line(_WRITERS[type(read)](read, run))
    except (ReplayProductError, ValueError, RecursionError):
        if run is not None:
            return describe(change)
        kind = change.get("kind") if isinstance(change, dict) else None
        return one_line(clipped(kind)) if isinstance(kind, str) and kind.strip() else "unknown change"


# --- kinds -------------------------------------------------------------------------------------


def _instructions(change: NewInstructions, run: Run | None) -> str:
    before = short(run.instructions) if run and run.instructions is not None else ""
    return f"instructions: {arrow(before, short(change.value))}"


def _message(change: NewMessage, run: Run | None) -> str:
    before, after = _recorded_message(run, change), change.value
    is_text = isinstance(after, str)
    spelled = "" if before is None else short(_content(before) if is_text else before)
    return f"message {change.index} of step {change.step}: {arrow(spelled, short(after))}"


def _tool_result(change: NewToolResult, run: Run | None) -> str:
    step = _step(run, change.step)
    call = step.call if step and isinstance(step.call, ToolCall) else None
    name = f"answer of {clipped(call.tool_name)}" if call else "tool answer"
    if change.failure is not None:
        edit = arrow(_recorded_answer(step), _failure(change.failure))
    else:
        fields = _changed_fields(call.result, change.value) if call else ""
        edit = fields or arrow(_recorded_answer(step), short(change.value))
    return f"{name} at step {change.step}: {edit}"


def _decision(change: NewDecision, run: Run | None) -> str:
    step = _step(run, change.step)
    call = step.call if step and isinstance(step.call, ToolCall) else None
    name = f"{clipped(call.tool_name)} " if call else ""
    then = "" if call is None else ("denied" if call.outcome == "denied" else "approved")
    return f"approval of {name}at step {change.step}: {arrow(then, change.outcome)}"


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
    return listed(edits, lambda each: operation_words(each, before), _SHOWN)


def _model_answer(change: NewModelAnswer, run: Run | None) -> str:
    step = _step(run, change.step)
    recorded = step.call.response if step and isinstance(step.call, ModelCall) else None
    before = "" if recorded is None else _response(recorded.value)
    return f"model answer at step {change.step}: {arrow(before, _answer(change.answer))}"


def _state(change: NewState, run: Run | None) -> str:
    state = input_state(run, change.step) if run and _step(run, change.step) else NOTHING
    state = NOTHING if state is None else state
    return f"state at step {change.step}: {listed(change.patch, lambda each: operation_words(each, state))}"


def _model(change: NewModel, run: Run | None) -> str:
    before = clipped(run.model) if run and run.model else ""
    model = [arrow(before, clipped(change.model))] if change.model else []
    recorded, settings = _settings(run), change.settings or {}

    def setting(name: str) -> str:
        return f"{clipped(name)} {arrow(short(recorded[name]) if name in recorded else '', short(settings[name]))}"

    parts = [*model, *([listed(settings, setting)] if settings else [])]
    return f"model: {', '.join(parts) or 'no settings'}"


def _clock(change: NewClock, run: Run | None) -> str:
    if change.shift is not None:
        return f"clock: {_seconds(change.shift)} s"
    return f"clock: → {change.at.isoformat() if change.at else ''}"


def _agent(change: NewAgent, run: Run | None) -> str:
    return f"own code: {clipped(change.name)}"


def _rule(change: Rule, run: Run | None) -> str:
    return f"rule: when {change.when.text}, answer {_answer(change.answer)}"


_WRITERS: dict[type[Change], Callable[[Any, Run | None], str]] = {
    NewInstructions: _instructions,
    NewMessage: _message,
    NewToolResult: _tool_result,
    NewDecision: _decision,
    NewModelAnswer: _model_answer,
    NewState: _state,
    NewModel: _model,
    NewClock: _clock,
    NewAgent: _agent,
    Rule: _rule,
}


# --- parts -------------------------------------------------------------------------------------


def _answer(answer: Answer) -> str:
    text = [] if answer.text is None else [short(answer.text)]
    return ", ".join([*text, *([listed(answer.tool_calls, _asked)] if answer.tool_calls else [])])


def _asked(call: AskedCall) -> str:
    return f"{clipped(call.name)}({short(call.arguments)})"


def _response(message: JsonValue) -> str:
    """What a recorded answer says: its texts and its calls."""
    return listed([part for part in _parts(message) if part.get("part_kind") in ("text", "tool-call")], _said)


def _said(part: JsonObject) -> str:
    if part["part_kind"] == "text":
        return short(part.get("content"))
    arguments = part.get("args")
    spelled = clipped(arguments) if isinstance(arguments, str) else short(arguments or {})
    return f"{clipped(str(part.get('tool_name')))}({spelled})"


def _content(message: JsonValue) -> JsonValue:
    """The text that a changed message takes the place of."""
    contents = [part.get("content") for part in _parts(message)]
    return contents[0] if len(contents) == 1 else contents


def _parts(message: JsonValue) -> list[JsonObject]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _failure(failure: ToolFailure) -> str:
    words = ": ".join(clipped(part) for part in (failure.type, failure.message) if part)
    return f"error {words}".strip() + (" (ends the run)" if failure.crashes else "")


def _seconds(shift: timedelta) -> str:
    seconds = shift.total_seconds()
    return f"{MINUS if seconds < 0 else '+'}{abs(seconds):,.6f}".rstrip("0").rstrip(".")


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
