"""The calls that a run's last model answer asks for, and what became of them."""

from __future__ import annotations

from sessions_app.core.judge.reading import (
    is_framework_written,
    main_models,
    object_of,
    own_tools,
    seen_message,
    value_of,
)
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import TOLD_TO_THE_MODEL, WAITING, ModelCall, Run, Step, ToolCall, called_by_code, is_skipped

NEEDS_NO_ANSWER = frozenset({"crashed", "interrupted", "deferred", "unapproved", "denied"})
"""Outcomes that a replay brings about without a recorded answer of the tool."""


def is_settled(step: Step, call: ToolCall, *, or_waits: bool = True) -> bool:
    if call.outcome in WAITING:
        return or_waits
    if (call.retry or {}).get("cause") == "validation_error" and not call.is_output:
        return is_answered(step, call)  # the replay refuses the arguments in the recorded words
    return is_answered(step, call) or is_framework_written(call) or call.outcome in NEEDS_NO_ANSWER


def waiting(run: Run) -> list[tuple[Step, ToolCall]]:
    """Calls that the run left for somebody outside: its outcome says so, or the definition of its tool."""
    last = last_model(run)
    kinds = {} if last is None else kinds_of_tools(last[1])
    return [(step, call) for step, call in asked_last(run) if _waits(call, kinds)]


def _waits(call: ToolCall, kinds: dict[str, JsonValue]) -> bool:
    if call.outcome is not None:
        return call.outcome in WAITING
    return call.result is None and kinds.get(call.tool_name) in _ANSWERED_OUTSIDE


_ANSWERED_OUTSIDE = ("unapproved", "external")
"""Kinds of tools, as Pydantic AI's definitions name them, whose calls end a run until somebody answers."""


def kinds_of_tools(call: ModelCall) -> dict[str, JsonValue]:
    """Of the tools that a request offered, by their names, as Pydantic AI's definitions say them."""
    parameters = object_of(call.parameters).get("function_tools")
    listed = [tool.value for tool in call.tools] if call.tools is not None else parameters
    tools = listed if isinstance(listed, list) else []
    return {str(tool.get("name")): tool.get("kind") for tool in tools if isinstance(tool, dict)}


def names_of_tools(call: ModelCall) -> set[str] | None:
    """All that the model was offered; None where the record does not say."""
    parameters = object_of(call.parameters)
    listed = parameters.get("function_tools") if call.tools is None else [value_of(tool) for tool in call.tools]
    if not isinstance(listed, list):
        return None
    return {str(tool.get("name")) for tool in listed if isinstance(tool, dict)}


def is_answered(step: Step, call: ToolCall) -> bool:
    """An error stands for an answer: the replay raises it again. Of one that the model was told, it needs the words."""
    return call.result is not None or (step.error is not None and call.outcome not in TOLD_TO_THE_MODEL)


def were_skipped(run: Run) -> bool:
    """Whether the text beside the last calls was the output already, as a stream with `end_strategy="early"` ends."""
    calls = [call for _, call in asked_last(run)]
    return bool(calls) and all(is_skipped(call) and not call.is_output for call in calls)


def asked_last(run: Run) -> list[tuple[Step, ToolCall]]:
    """Steps of the calls that the last answer asks for; a record need not say which answer asked."""
    last = last_model(run)
    if last is None:
        return []
    step, by_code = last[0], called_by_code(run)
    return [
        (each, call)
        for each, call in own_tools(run)
        if each.parent == step.index or (each.parent is None and each.index > step.index and each.index not in by_code)
    ]


def last_model(run: Run) -> tuple[Step, ModelCall] | None:
    return next(iter(main_models(run)[-1:]), None)


def calls_in(call: ModelCall) -> list[JsonObject]:
    """The parts of an answer that ask for a tool."""
    if call.response is None:
        return []
    return seen_message(call.response, step=0).parts_of("tool-call")


def kinds_said(call: ModelCall) -> set[str]:
    parts = seen_message(call.response, step=0).parts if call.response else []
    return {str(part.get("part_kind")) for part in parts} - {"thinking"}
