"""Parts of messages, of any framework: what they are, what they say, and what else stands in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sessions_app.core.base64_data import Folded, folded
from sessions_app.core.payload import JsonValue
from sessions_app.web.render import spelled
from sessions_app.web.render.spelled import Pairs
from sessions_app.web.render.tree import Node, build_tree

Look = Literal["text", "system", "thinking", "call", "answer", "retry", "media", "unknown"]
TEXT_SHOWN = 16 * 1024
NODES = 60
"""Nodes of one part's tree; a page holds many parts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of a message."""

    look: Look
    label: str
    """What it is, in the words of these pages; an unknown kind keeps its own name."""
    name: str | None = None
    """Of the tool, where there is one."""
    call_id: str | None = None
    pointer: str = ""
    """Where it stands in its message."""
    text: str | None = None
    cut: int = 0
    tree: Node | None = None
    folded: Folded | None = None
    folded_pointer: str = ""
    rest: Node | None = None
    """Fields that were not used above."""


def part_of(value: JsonValue, pointer: str) -> Part:
    """Never fails: what is not understood is shown as it stands."""
    if spelled.is_text(value):
        return with_content(Part(look="text", label="text", pointer=pointer), value, pointer)
    if not isinstance(value, Pairs):
        return Part(look="unknown", label="unknown part", pointer=pointer, tree=build_tree(value, nodes=NODES))
    kind = next((t for t in (value.text("part_kind"), value.text("type"), value.text("kind")) if t), "")
    shape = _SHAPES.get(kind.replace("_", "-"))
    if shape is None:
        return _unknown(value, kind, pointer)
    return _known(value, shape, pointer)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Which fields of a kind of part hold what; the first one that is there counts."""

    look: Look
    label: str
    content: tuple[str, ...]
    name: tuple[str, ...] = ()
    call_id: tuple[str, ...] = ()


_CALL_IDS = ("tool_call_id", "call_id", "toolCallId", "tool_use_id", "id")
_NAMES = ("tool_name", "toolName", "name")


def _call(*content: str, label: str = "tool call") -> _Shape:
    return _Shape("call", label, content, _NAMES, _CALL_IDS)


def _answer(*content: str, label: str = "tool answer") -> _Shape:
    return _Shape("answer", label, content, _NAMES, _CALL_IDS)


def _media(label: str, *content: str) -> _Shape:
    return _Shape("media", label, content, ("filename", "file_id", "identifier"))


_TEXT = _Shape("text", "text", ("content", "text"))
_THINKING = _Shape("thinking", "thinking", ("content", "thinking", "text", "reasoning", "summary"))

_SHAPES: dict[str, _Shape] = {
    "text": _TEXT,
    "input-text": _TEXT,
    "output-text": _TEXT,
    "refusal": _Shape("text", "refusal", ("refusal", "content")),
    "user-prompt": _Shape("text", "user", ("content",)),
    "system-prompt": _Shape("system", "system prompt", ("content",)),
    "instruction": _Shape("system", "instructions", ("content",), ("name",)),
    "thinking": _THINKING,
    "reasoning": _THINKING,
    "redacted-thinking": _Shape("thinking", "thinking, encrypted", ("data",)),
    "tool-call": _call("args", "arguments", "input"),
    "tool-use": _call("input"),
    "function-call": _call("arguments", "args"),
    "builtin-tool-call": _call("args", label="built-in tool call"),
    "native-tool-call": _call("args", label="built-in tool call"),
    "server-tool-use": _call("input", label="built-in tool call"),
    "tool-return": _answer("content"),
    "tool-result": _answer("content", "output", "result"),
    "tool-call-response": _answer("response", "result", "content"),
    "function-call-output": _answer("output"),
    "function-response": _answer("response"),
    "builtin-tool-return": _answer("content", label="built-in tool answer"),
    "native-tool-return": _answer("content", label="built-in tool answer"),
    "retry-prompt": _Shape("retry", "retry prompt", ("content",), _NAMES, _CALL_IDS),
    "retry-feedback": _Shape("retry", "retry feedback", ("content",), _NAMES, _CALL_IDS),
    "image": _media("image", "source", "data", "content", "image"),
    "image-url": _media("image address", "url", "image_url"),
    "input-image": _media("image address", "image_url"),
    "audio-url": _media("audio address", "url"),
    "video-url": _media("video address", "url"),
    "document-url": _media("document address", "url"),
    "input-audio": _media("audio", "input_audio"),
    "binary": _media("file", "data"),
    "blob": _media("file", "content", "data"),
    "file": _media("file", "content", "data", "file"),
    "document": _media("document", "source"),
    "uri": _media("address", "uri"),
}
_KIND_FIELDS = ("part_kind", "type", "kind")


def _known(value: Pairs, shape: _Shape, pointer: str) -> Part:
    content = _first(value, shape.content)
    name = _first(value, shape.name)
    call_id = _first(value, shape.call_id)
    used = {key for key in (content, name, call_id) if key} | set(_KIND_FIELDS)
    rest = value.without(*used)
    part = Part(
        look=shape.look,
        label=shape.label,
        name=value.text(name) if name else None,
        call_id=value.text(call_id) if call_id else None,
        pointer=pointer,
        rest=build_tree(rest, pointer=pointer, nodes=NODES) if rest else None,
    )
    if content is None:
        return part
    return with_content(part, value.get(content), f"{pointer}/{content}", media_type=value.text("media_type"))


def _first(value: Pairs, names: tuple[str, ...]) -> str | None:
    """The first of the names that holds something; one that is there but empty is better than none."""
    present = [name for name in names if any(key == name for key, _ in value)]
    return next((name for name in present if value.get(name) is not None), present[0] if present else None)


def with_content(part: Part, content: JsonValue, pointer: str, *, media_type: str | None = None) -> Part:
    """The part with what it says: text, base64 folded, or a tree."""
    if content is None:
        return part
    value = spelled.embedded(content) if part.look in ("call", "answer") else content
    if not spelled.is_text(value):
        tree = build_tree(value, pointer=pointer, nodes=NODES)
        return replace(part, tree=tree)
    found = folded(value, at_least=64 if part.look == "media" and media_type else 2048)
    if found:
        shown = Folded(media_type=media_type or found.media_type, size=found.size)
        return replace(part, folded=shown, folded_pointer=pointer)
    return replace(part, text=value[:TEXT_SHOWN], cut=max(0, len(value) - TEXT_SHOWN))


def _unknown(value: Pairs, kind: str, pointer: str) -> Part:
    return Part(
        look="unknown",
        label=kind or "unknown part",
        pointer=pointer,
        tree=build_tree(value, pointer=pointer, nodes=NODES),
    )
