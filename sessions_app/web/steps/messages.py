"""Messages of a history as people read them, whichever framework wrote them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sessions_app.core.payload import JsonValue, Payload
from sessions_app.web.render import spelled
from sessions_app.web.render.spelled import Pairs
from sessions_app.web.render.tree import Node, build_tree
from sessions_app.web.steps.parts import Part, part_of, with_content

Role = Literal["system", "user", "model", "tool", "unknown"]
PARTS = 100
"""Parts of one message that are shown."""

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "model",
    "model": "model",
    "ai": "model",
    "tool": "tool",
    "function": "tool",
}
_ITEM_ROLES: dict[str, Role] = {
    "function_call": "model",
    "reasoning": "model",
    "function_call_output": "tool",
}
"""Items of the OpenAI Responses API, which are parts without a message around them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message, with where it stands and what it holds."""

    role: Role
    digest: str
    size: int
    parts: tuple[Part, ...] = ()
    more_parts: int = 0
    instructions: Part | None = None
    """The system prompt that came with a request, when the framework keeps it apart."""
    rest: Node | None = None
    """Other fields of the message."""
    position: int = 0
    """From 1, in the history that is shown."""
    is_new: bool = False
    """Not in the previous request to the model."""
    at: str | None = None
    """The message's own time, as recorded."""


def message_of(payload: Payload) -> Message:
    """Never fails: a message of a shape that nobody knows is shown as a tree or as text."""
    blank = Message(role="unknown", digest=payload.digest, size=payload.size)
    value = spelled.read(payload.content) if payload.is_json else payload.as_text()
    if isinstance(value, spelled.Unreadable):
        value = payload.as_text()
    if not isinstance(value, Pairs):
        return replace(blank, parts=(part_of(value, ""),))
    if value.text("kind") in ("request", "response") and isinstance(value.get("parts"), list):
        return _pydantic(blank, value)
    if value.text("role") is not None:
        return _chat(blank, value)
    if value.text("type") in _ITEM_ROLES:
        return replace(blank, role=_ITEM_ROLES[value.get("type")], parts=(part_of(value, ""),))
    return replace(blank, parts=(part_of(value, ""),))


def _pydantic(blank: Message, value: Pairs) -> Message:
    items = value.get("parts")
    instructions = value.text("instructions")
    return replace(
        blank,
        role=_role_of_request(items) if value.get("kind") == "request" else "model",
        parts=_parts(items, "/parts"),
        more_parts=max(0, len(items) - PARTS),
        instructions=_instructions(instructions),
        at=value.text("timestamp"),
        rest=_rest(value, "kind", "parts", "instructions", "timestamp"),
    )


def _role_of_request(items: list[JsonValue]) -> Role:
    kinds = {part.text("part_kind") for part in items if isinstance(part, Pairs)}
    if kinds & {"user-prompt"}:
        return "user"
    if kinds and kinds <= {"tool-return", "retry-prompt", "retry-feedback", "builtin-tool-return"}:
        return "tool"
    return "system" if kinds and kinds <= {"system-prompt", "instruction"} else "user"


def _instructions(text: str | None) -> Part | None:
    if not text:
        return None
    part = Part(look="system", label="instructions", pointer="/instructions")
    return with_content(part, text, "/instructions")


def _chat(blank: Message, value: Pairs) -> Message:
    role = _ROLES.get((value.text("role") or "").lower(), "unknown")
    return replace(
        blank,
        role=role,
        parts=_content_parts(value, role) + _tool_calls(value),
        at=value.text("timestamp"),
        rest=_rest(value, "role", "content", "parts", "tool_calls", "timestamp", "type"),
    )


def _content_parts(value: Pairs, role: Role) -> tuple[Part, ...]:
    name = "parts" if isinstance(value.get("parts"), list) else "content"
    content = value.get(name)
    if content is None:
        return ()
    if role == "tool" and not isinstance(value.get("parts"), list):
        return (part_of(_as_answer(value), ""),)
    if isinstance(content, list):
        return _parts(content, f"/{name}")
    if spelled.is_text(content):
        look: Part = Part(look="system" if role == "system" else "text", label=role, pointer=f"/{name}")
        return (with_content(look, content, f"/{name}"),)
    return (part_of(content, f"/{name}"),)


def _as_answer(value: Pairs) -> Pairs:
    """A chat message of role `tool` is one tool answer."""
    fields = Pairs((key, item) for key, item in value if key in ("name", "tool_call_id", "content"))
    return Pairs([("type", "tool_result"), *fields])


def _tool_calls(value: Pairs) -> tuple[Part, ...]:
    calls = value.get("tool_calls")
    if not isinstance(calls, list):
        return ()
    return tuple(part_of(_flat_call(call), f"/tool_calls/{i}") for i, call in enumerate(calls[:PARTS]))


def _flat_call(call: JsonValue) -> JsonValue:
    """`{"id", "function": {"name", "arguments"}}` of chat completions as one flat part."""
    function = call.get("function") if isinstance(call, Pairs) else None
    if not isinstance(function, Pairs):
        return Pairs([("type", "tool_call"), *call]) if isinstance(call, Pairs) else call
    return Pairs([("type", "tool_call"), ("id", call.get("id")), *function])


def _parts(items: list[JsonValue], pointer: str) -> tuple[Part, ...]:
    found: list[Part] = []
    for i, item in enumerate(items[:PARTS]):
        found += _spread(item, f"{pointer}/{i}")
    return tuple(found)


def _spread(item: JsonValue, pointer: str) -> list[Part]:
    """A user prompt of several pieces is shown piece by piece."""
    content = item.get("content") if isinstance(item, Pairs) else None
    if not isinstance(content, list) or item.text("part_kind") not in ("user-prompt", "system-prompt"):
        return [part_of(item, pointer)]
    return [part_of(piece, f"{pointer}/content/{i}") for i, piece in enumerate(content[:PARTS])]


def _rest(value: Pairs, *used: str) -> Node | None:
    rest = value.without(*used)
    return build_tree(rest, nodes=40) if rest else None
