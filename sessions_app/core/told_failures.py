"""Calls that failed, of which a record of somebody's own loop has the error alone.

A loop that goes on puts the failure into words for the model: they stand in the request behind the call. Where the run
ended with that error nobody was told of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import OPENAI_AGENTS, PYDANTIC_AI, ModelCall, Run, Step, ToolCall

_HOW_THEY_END = (None, "failed", "crashed")


def with_words_of_failures(run: Run) -> Run:
    """With the words that the model was told as the results of such calls. Recorders of ours keep both."""
    if run.agent.framework in (PYDANTIC_AI, OPENAI_AGENTS) or not any(map(_has_error_alone, run.steps)):
        return run
    return replace(run, steps=tuple(reversed(list(_told(run)))))


def _told(run: Run) -> Iterator[Step]:
    """The steps from the last one to the first, each with what the nearest request behind it tells."""
    answers = _answers_in(run.final)
    for step in reversed(run.steps):
        match step.call:
            case ModelCall() as call:
                answers |= _answers_in(call.history)
                yield step
            case ToolCall() as call if _has_error_alone(step) and call.call_id in answers:
                yield replace(step, call=_with(answers[call.call_id], call))
            case ToolCall(outcome="failed") as call if step.error == run.error and _has_error_alone(step):
                yield replace(step, call=replace(call, outcome="crashed"))
            case _:
                yield step


def _with(told: JsonObject, call: ToolCall) -> ToolCall:
    ended = "success" if told.get("outcome") == "success" else "failed"  # which the judge holds against the error
    return replace(call, result=Payload.of(told["content"]), outcome=ended)


def _has_error_alone(step: Step) -> bool:
    call = step.call
    if not isinstance(call, ToolCall) or step.error is None:
        return False
    return call.call_id is not None and call.result is None and call.outcome in _HOW_THEY_END


def _answers_in(request: History | None) -> dict[str | None, JsonObject]:
    """What a request tells of calls, by their ids."""
    message = request.message.value if request is not None else None
    parts = message.get("parts") if isinstance(message, dict) else None
    found = filter(_is_answer, parts) if isinstance(parts, list) else ()
    return {str(part.get("tool_call_id")): part for part in found}


def _is_answer(part: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(part, dict) and part.get("part_kind") == "tool-return" and "content" in part
