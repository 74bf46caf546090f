"""The mark by which an agent's code says of a tool that it only reads: `metadata={"replay": "read"}`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.run import ModelCall, Run, Step

MARK = "replay"


def without_new_marks(recorded: Run, observed: Run) -> Run:
    """The run that was observed, without the marks that no tool of this name had in the recording: who marks a tool
    after a run was recorded asks the model for nothing else."""
    known = {
        tool.get("name") for _, call in recorded.model_calls for tool in _tools(call.parameters) if _is_marked(tool)
    }
    steps = tuple(_unmarked(step, known) for step in observed.steps)
    return replace(observed, steps=steps)


def _unmarked(step: Step, known: set[object]) -> Step:
    call = step.call
    if not isinstance(call, ModelCall) or call.parameters is None:
        return step
    if not any(_is_marked(tool) and tool.get("name") not in known for tool in _tools(call.parameters)):
        return step
    tools = [tool if tool.get("name") in known else _without_mark(tool) for tool in _tools(call.parameters)]
    parameters = Payload.of_json({**call.parameters.value, "function_tools": tools})
    return replace(step, call=replace(call, parameters=parameters))


def _tools(parameters: Payload | None) -> Iterator[JsonObject]:
    value = parameters.value if parameters else None
    found = value.get("function_tools") if isinstance(value, dict) else None
    return (tool for tool in found or [] if isinstance(tool, dict))


def _is_marked(tool: JsonObject) -> bool:
    marks = tool.get("metadata")
    return isinstance(marks, dict) and MARK in marks


def _without_mark(tool: JsonObject) -> JsonObject:
    return {**tool, "metadata": without_mark(tool["metadata"])} if _is_marked(tool) else tool


def without_mark(metadata: JsonObject) -> JsonObject | None:
    """None, as of a tool without metadata, where it was the only one."""
    return {name: value for name, value in metadata.items() if name != MARK} or None
