"""What Pydantic AI's loop tells the model of itself: what changed between requests, and which output it may give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sessions_app.core.history import History, nodes
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Fixture

NEW_TOOLS = "tool-availability-delta"
CHANGES = frozenset(
    {NEW_TOOLS, "capability-load-delta", "instruction-baseline", "instruction-delta", "model-settings-delta"}
)
"""Kinds of parts that tell of other tools, instructions or settings than those of the request before."""
_OUTPUTS = frozenset({"return text", "include your response in a tool call", "call a tool", "return an image"})


def tells_of_changes(message: JsonObject) -> bool:
    return any(part.get("part_kind") in CHANGES for part in _parts(message))


def tools_added(history: History | None) -> dict[str, int]:
    """Where the model was told of each new tool first, counted in messages."""
    told = ((name, node.length) for node, part in _told_of_tools(history) for name in _names(part))
    return dict(sorted(told, key=lambda pair: -pair[1]))


def with_reveals(history: History | None, found: Iterable[Fixture]) -> list[Fixture]:
    """Tools may answer with others that the model may call from there on; the messages alone name those."""
    named = {part.get("tool_call_id"): _names(part) for _, part in _told_of_tools(history)}
    return [replace(each, reveals=named.get(each.call.call_id, ()) if each.call.call_id else ()) for each in found]


def _told_of_tools(history: History | None) -> Iterator[tuple[History, JsonObject]]:
    for node in nodes(history):
        for part in _parts(node.message.value):
            if part.get("part_kind") == NEW_TOOLS:
                yield node, part


def _parts(message: JsonValue) -> list[JsonObject]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part for part in parts or [] if isinstance(part, dict)]


def _names(part: JsonObject) -> tuple[str, ...]:
    names = part.get("tools_added")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def asks_for_output(content: JsonValue) -> bool:
    """Whether these are the loop's words for an answer that holds no output."""
    if not isinstance(content, str) or not content.startswith("Please ") or not content.endswith("."):
        return False
    return set(content[len("Please ") : -1].split(" or ")) <= _OUTPUTS
