"""Names of compared fields as people say them; what a team's own values hold keeps its path."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sessions_app.core.compare.paths import segment_text
from sessions_app.core.payload import JsonValue
from sessions_app.core.place_words import segments
from sessions_app.core.run import ModelCall, Run, Step

_ROOTS = {
    "answered_model": "model that answered",
    "args": "arguments",
    "arguments": "arguments",
    "call_id": "id of the call",
    "code": "code",
    "final": "last messages",
    "http": "HTTP",
    "input": "question",
    "input_state": "state before the step",
    "output": "final answer",
    "parameters": "request parameters",
    "prior": "earlier messages",
    "request": "messages sent",
    "response": "answer",
    "result": "tool answer",
    "state": "state after the step",
    "status": "outcome",
    "tenant_id": "tenant",
    "told_otherwise": "told twice by its spans",
    "tool_name": "tool",
    "user_id": "user",
}
_OF_PARTS = {
    "args": "arguments of its call",
    "content": "text of the answer",
    "tool_call_id": "id of its call",
    "tool_name": "tool that it calls",
}
_NAMED = {"args": "argument", "settings": "setting", "flags": "flag"}
"""Where the key below has a word of its own."""


def field_words(path: str, tools: Sequence[str] = ()) -> str:
    """`result.orders[0].id` is "tool answer, orders[0].id"; `tools` are the names of the definitions, in order."""
    root, *below = segments(path) or [path]
    if root == "tools" and below and isinstance(below[0], int):
        return _of_tool(tools[below[0]] if below[0] < len(tools) else f"{below[0] + 1}", below[1:])
    if root in ("request", "final", "prior"):
        return _of_message(below[1:] if below[:1] == ["messages"] else below) or _ROOTS[str(root)]
    if root == "response" and below[:1] == ["parts"] and len(below) > 2:
        return _of_part(str(below[2]), below[3:])
    if root == "response" and below[:1] == ["usage"] and len(below) > 1:
        return " ".join(map(str, below[1:])).replace("_", " ")
    if root == "agent" and below[:1] == ["tool_retries"] and len(below) > 1:
        return f"retries of tool {below[1]}"
    if root in _NAMED and below and isinstance(below[0], str):
        return _with(f"{_NAMED[root]} {below[0]}", below[1:])
    if root in ("agent", "code") and below:
        return _with(f"{root} {below[0]}".replace("_", " "), below[1:])
    return _with(_ROOTS.get(str(root), str(root).replace("_", " ")), below)


def _of_tool(name: str, below: list[str | int]) -> str:
    tool, schema = f"tool {name}", below[1:] if below[:1] == ["parameters_json_schema"] else []
    if schema[:1] == ["properties"] and len(schema) > 1:
        return _with(f"parameter {schema[1]} of {tool}", schema[2:])
    if schema[:1] == ["required"]:
        return f"required parameters of {tool}"
    if len(below) == 1:
        return f"{below[0]} of {tool}".replace("parameters_json_schema", "parameters")
    return _with(tool, schema or below)


def _of_message(below: list[str | int]) -> str | None:
    if not below or not isinstance(below[0], int):
        return None
    rest = below[3:] if below[1:2] == ["parts"] else below[1:]
    return _with(f"message {below[0] + 1}", [key for key in rest if key != "content"])


def _of_part(key: str, below: list[str | int]) -> str:
    return _with("argument", below, joint=" ") if key == "args" and below else _with(_OF_PARTS.get(key, key), below)


def _with(words: str, below: list[str | int], joint: str = ", ") -> str:
    inner = "".join(map(segment_text, below)).removeprefix(".")
    return f"{words}{joint}{inner}" if inner else words


def tool_names(step: Step | None) -> tuple[str, ...]:
    """The tools that a model was offered, in their order."""
    tools = step.call.tools if step is not None and isinstance(step.call, ModelCall) else None
    return tuple(_tool_name(tool.parsed) for tool in tools or ())


def tool_names_of(run: Run) -> tuple[str, ...]:
    """Of the first model step that has them."""
    return next((names for step in run.steps if (names := tool_names(step))), ())


def _tool_name(tool: JsonValue) -> str:
    return str(tool.get("name")) if isinstance(tool, dict) else "without a name"


def signature(tool: JsonValue) -> str | None:
    """`track_parcel(carrier, tracking_id): Ask the carrier.` of the definition of a tool; None for anything else."""
    if not isinstance(tool, dict) or not isinstance(tool.get("parameters_json_schema"), dict):
        return None
    described = tool.get("description")
    called = f"{tool.get('name')}({', '.join(tool['parameters_json_schema'].get('properties') or {})})"
    return f"{called}: {described}" if described else called


_PARTS = {
    "user-prompt": "user: {content}",
    "system-prompt": "system: {content}",
    "text": "model: {content}",
    "thinking": "model thinks: {content}",
    "tool-call": "model calls {tool_name}({args})",
    "tool-return": "{tool_name} returned {content}",
    "retry-prompt": "{tool_name} is to be tried again: {content}",
}


def message_text(message: JsonValue) -> str | None:
    """A whole message as its parts say it, one a line; None for anything else, or where a part is of another kind."""
    parts = message.get("parts") if isinstance(message, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return None
    ways = [_PARTS.get(str(part.get("part_kind"))) for part in parts]
    lines = [way.format_map(_Said(part)) for way, part in zip(ways, parts, strict=True) if way]
    return "\n".join(lines) if lines and len(lines) == len(parts) else None


class _Said(dict[str, JsonValue]):
    """The members of a part: texts as they are, other values as JSON."""

    def __getitem__(self, key: str) -> str:
        value = self.get(key, "")
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
