"""A JSON value as a tree of a bounded number of nodes."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from sessions_app.core.base64_data import Folded, folded
from sessions_app.core.clipping import clipped
from sessions_app.core.payload import JsonValue
from sessions_app.web.render.spelled import Number, Pairs, compact, is_text

NODES = 200
OPEN_LEVELS = 2
LEVELS = 24
"""Drawn in one piece; what lies deeper opens from there, as the rest of a long list does."""
TEXT_SHOWN = 2000
"""Characters of one text; the rest is in the payload's own page."""
SUMMARY = 60

NodeKind = Literal["object", "array", "text", "number", "word"]
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(kw_only=True, slots=True)
class Node:
    """One value of the document and its place."""

    kind: NodeKind
    key: str | None = None
    index: int | None = None
    path: str = ""
    """As people write it: `orders[1].user_id`."""
    pointer: str = ""
    """RFC 6901, for addresses: it can name any key."""
    text: str = ""
    """A leaf's text, or one line that stands for a folded object or list."""
    cut: int = 0
    """Characters of a text that are not shown."""
    folded: Folded | None = None
    count: int = 0
    """Members of an object, items of a list."""
    children: list[Node] = field(default_factory=list)
    start: int = 0
    """Children left out before the first one here."""
    is_open: bool = False

    @property
    def is_container(self) -> bool:
        return self.kind in ("object", "array")

    @property
    def hidden(self) -> int:
        """Children that are not drawn."""
        return self.count - self.next_child

    @property
    def next_child(self) -> int:
        return self.start + len(self.children)


def build_tree(value: JsonValue, *, pointer: str = "", path: str = "", start: int = 0, nodes: int = NODES) -> Node:
    """Draws level by level, so that a long first branch does not hide the ones after it.

    `start` leaves out the first children of the top value: the next part of a long list.
    """
    top = _node(value, pointer=pointer, path=path)
    top.start = start
    queue = deque([(top, value, 0, start)] if top.count else [])
    left = nodes
    while queue and left > 0:
        node, held, level, first = queue.popleft()
        for child, item in _children(node, held, first, left):
            node.children.append(child)
            left -= 1
            if child.count and level + 1 < LEVELS:
                queue.append((child, item, level + 1, 0))
        node.is_open = level < OPEN_LEVELS
    return top


def _children(node: Node, held: JsonValue, first: int, at_most: int) -> list[tuple[Node, JsonValue]]:
    members = held[first : first + at_most]
    if isinstance(held, Pairs):
        return [(_member(node, key, item), item) for key, item in members]
    return [(_item(node, i, item), item) for i, item in enumerate(members, start=first)]


def _member(parent: Node, key: str, value: JsonValue) -> Node:
    step = key if _PLAIN_KEY.fullmatch(key) else f"[{compact(key)}]"
    dot = "." if parent.path and not step.startswith("[") else ""
    pointer = f"{parent.pointer}/{key.replace('~', '~0').replace('/', '~1')}"
    return _node(value, key=key, path=f"{parent.path}{dot}{step}", pointer=pointer)


def _item(parent: Node, index: int, value: JsonValue) -> Node:
    return _node(value, index=index, path=f"{parent.path}[{index}]", pointer=f"{parent.pointer}/{index}")


def _node(value: JsonValue, *, path: str, pointer: str, key: str | None = None, index: int | None = None) -> Node:
    place = {"key": key, "index": index, "path": path, "pointer": pointer}
    if isinstance(value, Pairs):
        return Node(kind="object", count=len(value), text=_summary(value), **place)  # type: ignore[arg-type]
    if isinstance(value, list):
        return Node(kind="array", count=len(value), text=_summary(value), **place)  # type: ignore[arg-type]
    if is_text(value):
        found = folded(value)
        shown = "" if found else value[:TEXT_SHOWN]
        cut = 0 if found else len(value) - len(shown)
        return Node(kind="text", text=shown, cut=cut, folded=found, **place)  # type: ignore[arg-type]
    kind: NodeKind = "number" if isinstance(value, Number) else "word"
    return Node(kind=kind, text=compact(value)[:TEXT_SHOWN], **place)  # type: ignore[arg-type]


def _summary(value: JsonValue) -> str:
    """The first few members on one line; never walks a large value."""
    if isinstance(value, Pairs):
        parts = [f"{key}: {_brief(item)}" for key, item in value[:4]]
        more = ", …" if len(value) > 4 else ""
        return clipped("{" + ", ".join(parts) + more + "}", SUMMARY)
    parts = [_brief(item) for item in value[:4]]
    return clipped("[" + ", ".join(parts) + (", …" if len(value) > 4 else "") + "]", SUMMARY)


def _brief(value: JsonValue) -> str:
    if isinstance(value, Pairs):
        return "{…}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    if is_text(value):
        return compact(value if len(value) <= 24 else f"{value[:24]}…")
    return compact(value)[:24]


def find(value: JsonValue, pointer: str) -> JsonValue:
    """The value at an RFC 6901 pointer; raises LookupError when there is none."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Pairs):
            value = _find_member(value, key)
        elif isinstance(value, list) and key.isdecimal():
            value = value[int(key)]
        else:
            raise LookupError(pointer)
    return value


def _find_member(members: Pairs, key: str) -> JsonValue:
    for name, value in members:
        if name == key:
            return value
    raise LookupError(key)


def path_of(pointer: str) -> str:
    """The pointer as people write it."""
    path = ""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        plain = f".{key}" if path else key
        path += f"[{key}]" if key.isdecimal() else plain if _PLAIN_KEY.fullmatch(key) else f"[{compact(key)}]"
    return path
