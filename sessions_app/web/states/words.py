"""What happened to a state, in the words of a page: `+docs`, `~orders.ORD-5521.status  "delivered" → "cancelled"`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice

from sessions_app.core.checkpoints import state_digest
from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.payload import JsonValue
from sessions_app.core.state import child_pointer
from sessions_app.core.state_history import Applied, Place
from sessions_app.web.render import spelled
from sessions_app.web.render.tree import Node, build_tree

TEXT = 120
"""Characters of a text that a row shows."""
MEMBERS = 4
NODES = 400
DEEPEST = 12
"""Levels of a tree that are drawn; a deeper value is opened by its path."""
ITEMS = 20
"""Members and items of a value inside the tree; the tree of its own path has more."""
_PLAIN = re.compile(r"[^\s.\[\]\"']+")


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownOperation:
    """One change in the list of them. `before` and `after` are empty where there was no value."""

    step: int
    name: str
    is_between: bool
    sign: str
    path: str
    pointer: str
    before: str
    after: str
    note: str = ""

    @property
    def css(self) -> str:
        return _CSS[self.sign]


_CSS = {"+": "added", "−": "removed", "~": "changed", "=": "checked"}


def path_words(place: Place) -> str:
    """As people write it; the whole state has no path."""
    words = ""
    for key in place:
        if key.isdecimal():
            words += f"[{key}]"
        elif _PLAIN.fullmatch(key):
            words += f".{key}" if words else key
        else:
            words += f"[{json.dumps(key, ensure_ascii=False)}]"
    return words


def pointer_of(place: Place) -> str:
    pointer = ""
    for key in place:
        pointer = child_pointer(pointer, key)
    return pointer


def brief(value: JsonValue) -> str:
    """One line of a value; never walks a large one. Nothing for `MISSING`."""
    if value is MISSING:
        return ""
    if isinstance(value, dict):
        members = ", ".join(f"{key[:TEXT]}: {_leaf(item)}" for key, item in islice(value.items(), MEMBERS))
        return f"{{{members}{', …' if len(value) > MEMBERS else ''}}}"
    if isinstance(value, list):
        return f"{len(value)} item{'' if len(value) == 1 else 's'}" if value else "[]"
    return _leaf(value, TEXT)


def _leaf(value: JsonValue, length: int = 24) -> str:
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    if isinstance(value, str) and len(value) > length:
        return json.dumps(f"{value[: length - 1]}…", ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)[: max(length, TEXT)]


def shown_operation(applied: Applied, name: str) -> ShownOperation:
    return ShownOperation(
        step=applied.step,
        name=name,
        is_between=applied.is_between,
        sign=_sign(applied.op, applied.before, applied.after),
        path=path_words(applied.place) or "the whole state",
        pointer=pointer_of(applied.place),
        before=brief(applied.before),
        after=brief(applied.after),
        note=_note(applied),
    )


def _sign(op: str, before: JsonValue, after: JsonValue) -> str:
    if op == "test":
        return "="
    if after is MISSING:
        return "−"
    return "+" if before is MISSING else "~"


def _note(applied: Applied) -> str:
    if applied.op == "test":
        return "checked"
    origin = applied.origin
    verb = "moved" if applied.op == "move" else "copied"
    return "" if origin is None else f"{verb} from {path_words(origin)}"


def state_tree(value: JsonValue, place: Place = (), *, start: int = 0) -> Node | None:
    """The value as a tree of bounded size and depth; None when it is nested too deep to be read at all."""
    try:
        plain = spelled.of_value(value)
    except RecursionError:
        return None
    tree = build_tree(plain, pointer=pointer_of(place), path=path_words(place), start=start, nodes=NODES)
    for child in tree.children:
        _trim(child, DEEPEST - 1)
    return tree


def digest_of(state: JsonValue) -> str | None:
    """SHA-256 of the state; None without one, and when it is nested too deep to be written."""
    try:
        return state_digest(state)
    except RecursionError:
        return None


def _trim(node: Node, levels: int) -> None:
    """A long list, or a deep value, does not hide what stands beside it."""
    del node.children[ITEMS if levels else 0 :]
    for child in node.children:
        _trim(child, levels - 1)
