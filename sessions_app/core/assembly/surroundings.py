"""What the spans around a call of a model say of it, where its own span is silent.

An agent's span may tell which tools it has and with which settings it asks; a framework's span around the call may hold
the answer as the framework understood it, with more facts than the call's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessions_app.core.assembly.requests import same_value
from sessions_app.core.assembly.tree import Node
from sessions_app.core.conventions.merging import merged
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.provider_messages import response_of
from sessions_app.core.spans.reading import CallPart, ChatMessage, Reading, ToolDefinition

_NEAR = 2
"""Spans around a call that may hold its answer."""


def fill_from_around(nodes: Sequence[Node]) -> None:
    """Only gaps are filled: what a call says of itself counts."""
    definitions = {tool.name: tool for node in nodes if node.kind == "tool" for tool in node.reading.tools or ()}
    for node in nodes:
        if node.kind == "model":
            agent = next((outer.reading for outer in node.above() if outer.kind == "agent"), None)
            _add_answer(node)
            if agent is not None:
                _add_agent(node.reading, agent, definitions)


def _add_agent(reading: Reading, agent: Reading, definitions: dict[str, ToolDefinition]) -> None:
    offered = reading.tools if reading.tools is not None else agent.tools
    reading.tools = None if offered is None else _whole(offered, definitions)
    reading.settings = {**(agent.settings or {}), **(reading.settings or {})} or None


def _whole(tools: tuple[ToolDefinition, ...], definitions: dict[str, ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Tools that are only named, as their own spans describe them; the same object where there are none."""
    if not any(tool.parameters is None and tool.name in definitions for tool in tools):
        return tools
    return tuple(definitions.get(tool.name, tool) if tool.parameters is None else tool for tool in tools)


def _add_answer(node: Node) -> None:
    reading = node.reading
    if reading.answer is None or (reading.finish_reason and reading.answered_model):
        return
    around = [outer.reading.output for outer in list(node.above())[:_NEAR] if outer.kind in ("chain", "other")]
    for found in (response_of(output) for said in around for output in _states(said)):
        if found is not None and _says_the_same(found.answer, reading.answer):
            named = Reading(
                convention=reading.convention,
                finish_reason=found.finish_reason,
                answered_model=found.model,
                response_id=found.response_id,
            )
            merged([reading, named])
            return


def _states(output: JsonValue) -> Iterator[JsonValue]:
    """The output, and where it is a step of a graph what that changed: `{"update": {"messages": […]}}`."""
    output = parsed(output)
    yield output
    for item in output if isinstance(output, list) else [output]:
        if isinstance(item, dict) and isinstance(item.get("update"), dict):
            yield item["update"]


def _says_the_same(left: ChatMessage, right: ChatMessage) -> bool:
    return left.words().strip() == right.words().strip() and same_value(_calls(left), _calls(right))


def _calls(message: ChatMessage) -> list[list[object]]:
    return [[part.tool_name, part.call_id] for part in message.parts if isinstance(part, CallPart)]
