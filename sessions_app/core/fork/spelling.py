"""Values and JSON Patch operations spelled on one line, cut where they are long."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from itertools import islice
from typing import TypeVar

from sessions_app.core.clipping import LENGTH, clipped
from sessions_app.core.payload import JsonObject, JsonValue

T = TypeVar("T")
MINUS = "\N{MINUS SIGN}"
NOTHING = object()
"""Where there is no value; null is one."""
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_CLOSING: dict[type, str] = {str: '"', list: "]", dict: "}"}


def short(value: JsonValue, length: int = LENGTH) -> str:
    """JSON on one line; what is long is cut in its middle and closed: `[{"order": …]`.

    A text that holds JSON, whole or broken off, stands in single quotes and without escapes.
    """
    if isinstance(value, str) and value.startswith(("{", "[")):
        return f"'{clipped(one_line(value[: 4 * length]), length - 2)}'"
    text = ""
    for piece in _ENCODER.iterencode(value[: length + 1] if isinstance(value, str) else value):
        text += piece
        if len(text) > length:
            closing = _CLOSING.get(type(value), "")
            return f"{text[: length - 1 - len(closing)]}…{closing}"
    return text


def one_line(text: str) -> str:
    """Without line breaks, which only names, conditions and texts in single quotes may hold."""
    return " ".join(text.split()) if text.splitlines() != [text] else text


def listed(items: Collection[T], spell: Callable[[T], str], most: int = 8) -> str:
    """The first few of them, and how many more there are."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(spell(item) for item in islice(items, most)) + more


def arrow(before: str, after: str) -> str:
    return f"{before} → {after}".lstrip()


# --- patches -----------------------------------------------------------------------------------


def operation_words(operation: JsonObject, state: JsonValue) -> str:
    """`state` is what the operation changes, or `NOTHING`."""
    op, path = operation.get("op"), _dotted(operation.get("path"))
    if op == "remove":
        return f"{MINUS}{path}"
    if op in ("move", "copy"):
        return f"+{path} ({op} of {_dotted(operation.get('from'))})"
    value = short(operation.get("value"))
    if op == "replace":
        return f"~{path} {arrow(_spelled_at(state, operation.get('path')), value)}"
    return f"+{path} {value}" if op == "add" else f"{clipped(op) if isinstance(op, str) else '?'} {path} = {value}"


def _dotted(pointer: JsonValue) -> str:
    """`/orders/0/status` as `orders.0.status`; the whole state is called so."""
    return clipped(".".join(_segments(pointer))) or "state"


def _spelled_at(state: JsonValue, pointer: JsonValue) -> str:
    """The value at a JSON Pointer; nothing where there is none."""
    for segment in _segments(pointer):
        if isinstance(state, list) and segment.isdecimal() and len(segment) < 10:
            state = next(iter(state[int(segment) :]), NOTHING)
        else:
            state = state.get(segment, NOTHING) if isinstance(state, dict) else NOTHING
    return "" if state is NOTHING else short(state)


def _segments(pointer: JsonValue) -> list[str]:
    parts = pointer.split("/")[1:] if isinstance(pointer, str) else []
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]
