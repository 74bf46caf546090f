"""Results of tools as the model was told them: they stand in the newest message of the request behind the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ModelCall, Step, ToolCall

_KINDS = ("tool-return", "retry-prompt")


def told_results(steps: Sequence[Step], final: History | None) -> dict[int, JsonObject]:
    """By the step of a call, the part that tells its result in the nearest request behind it; `final` is behind all.
    Call ids may come again."""
    nearest, found = _results_in(final), {}
    for step in reversed(steps):
        match step.call:
            case ModelCall() as call:
                nearest |= _results_in(call.history)
            case ToolCall(call_id=str() as call_id) if call_id in nearest:
                found[step.index] = nearest[call_id]
    return found


def _results_in(request: History | None) -> dict[str, JsonObject]:
    """By the ids of the calls."""
    message = request.message.value if request is not None else None
    parts = message.get("parts") if isinstance(message, dict) else None
    found = filter(_is_result, parts) if isinstance(parts, list) else ()
    return {str(part.get("tool_call_id")): part for part in found}


def _is_result(part: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(part, dict) and part.get("part_kind") in _KINDS and "content" in part
