"""Calls that failed, of which a record of somebody's own loop has the error alone, or the words.

A loop that goes on puts the failure into words for the model: they stand in the request behind the call. Where the run
ended with that error nobody was told of it.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.compare.strict import same_json
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.told_answers import is_spelled_otherwise
from sessions_app.core.run import ErrorInfo, Run, Step, ToolCall, is_of_library_recorder
from sessions_app.core.told_results import told_results

_HOW_THEY_END = (None, "failed", "crashed", "retried")


def with_words_of_failures(run: Run) -> Run:
    """With the words that the model was told as the results of such calls. Our recorders for libraries keep both."""
    if is_of_library_recorder(run) or not any(map(_lacks_ending, run.steps)):
        return run
    told = told_results(run.steps, run.final)
    return replace(run, steps=tuple(_with_words(step, told.get(step.index), run.error) for step in run.steps))


def _with_words(step: Step, told: JsonObject | None, end: ErrorInfo | None) -> Step:
    call = step.call
    if not isinstance(call, ToolCall) or not _lacks_ending(step):
        return step
    if call.result is not None:
        is_retried = told is not None and _tells_of_retry(told, call)
        return replace(step, call=replace(call, outcome="retried")) if is_retried else step
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


def _tells_of_retry(told: JsonObject, call: ToolCall) -> bool:
    """In the same words. Loops that write a retry prompt have no other name for what failed."""
    said, given = told["content"], call.result
    is_open = call.outcome is None or told.get("part_kind") == "retry-prompt"
    same = given is not None and (same_json(said, given.value) or is_spelled_otherwise(given, said))
    return is_open and same and _outcome(told) == "retried" and _are_words(said)


def _are_words(said: JsonValue) -> bool:
    """Of which a retry can be told: a text, or the errors of a validation."""
    is_list = isinstance(said, list) and all(isinstance(each, dict) and "msg" in each for each in said)
    return is_list or isinstance(said, str)


def _lacks_ending(step: Step) -> bool:
    """Whether what the model was told of its error is left out, or how the call ended."""
    call = step.call
    if not isinstance(call, ToolCall) or call.call_id is None:
        return False
    if call.result is not None:
        return call.outcome is None or (call.outcome == "failed" and step.error is not None)
    return step.error is not None and call.outcome in _HOW_THEY_END
