"""Looking into JSON values: equality, places, texts."""

from __future__ import annotations

import json
import re

from replay_goldens.trace import Json

SEEN = 300
"""Characters of a value that are shown."""
_INDEX = re.compile("0|[1-9][0-9]{0,15}")
_DOTTED = re.compile(r"[^.\[\]]+|\[(\d+)\]")


class NothingThere(LookupError):
    """A value has no such place; the message says where it ends."""


def same(left: Json, right: Json) -> bool:
    """Equal as JSON: `1`, `1.0` and `true` are three values; the order of keys means nothing."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def segments_of(path: str) -> list[str]:
    """`/orders/0/id` (RFC 6901), `orders[0].id` or `$.orders[0].id`."""
    if path == "" or path.startswith("/"):
        return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    plain = path[1:] if path.startswith("$") else path
    return [found.group(1) or found.group(0) for found in _DOTTED.finditer(plain)]


def value_at(value: Json, path: str) -> Json:
    """Raises `NothingThere`."""
    for segment in segments_of(path):
        value = _child(value, segment)
    return value


def _child(value: Json, segment: str) -> Json:
    if isinstance(value, dict) and segment in value:
        return value[segment]
    if isinstance(value, list) and _INDEX.fullmatch(segment) and int(segment) < len(value):
        return value[int(segment)]
    raise NothingThere(f"there is no {segment!r} in {short(value)}")


def short(value: Json) -> str:
    """A value in words, cut to `SEEN` characters."""
    text = value if isinstance(value, str) else as_text(value)
    return text if len(text) <= SEEN else text[: SEEN - 1] + "…"


def as_text(value: Json) -> str:
    """A text as it is, all else as JSON without escapes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def parsed(text: Json) -> Json:
    """What a text spells where it is JSON, else the text."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
