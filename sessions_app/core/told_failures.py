"""Calls that failed, of which a record of somebody's own loop has the error alone.

A loop that goes on puts the failure into words for the model: they stand in the request behind the call. Where the run
ended with that error nobody was told of it.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.run import ErrorInfo, Run, Step, ToolCall, is_of_library_recorder
from sessions_app.core.told_results import told_results

_HOW_THEY_END = (None, "failed", "crashed", "retried")


def with_words_of_failures(run: Run) -> Run:
    """With the words that the model was told as the results of such calls. Our recorders for libraries keep both."""
    if is_of_library_recorder(run) or not any(map(_has_error_alone, run.steps)):
        return run
    told = told_results(run.steps, run.final)
    return replace(run, steps=tuple(_with_words(step, told.get(step.index), run.error) for step in run.steps))


def _with_words(step: Step, told: JsonObject | None, end: ErrorInfo | None) -> Step:
    call = step.call
    if not isinstance(call, ToolCall) or not _has_error_alone(step):
        return step
    if told is not None:
        return replace(step, call=_with(told, call))
    is_end = call.outcome == "failed" and step.error == end
    return replace(step, call=replace(call, outcome="crashed")) if is_end else step


def _with(told: JsonObject, call: ToolCall) -> ToolCall:
    return replace(call, result=Payload.of(told["content"]), outcome=_outcome(told))


def _outcome(told: JsonObject) -> str:
    """A success is what the judge holds against the error."""
    if told.get("part_kind") == "retry-prompt" or told.get("outcome") == "retried":
        return "retried"
    return "success" if told.get("outcome") == "success" else "failed"


def _has_error_alone(step: Step) -> bool:
    call = step.call
    if not isinstance(call, ToolCall) or step.error is None:
        return False
    return call.call_id is not None and call.result is None and call.outcome in _HOW_THEY_END
