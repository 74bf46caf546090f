"""JSON inside a text, as attributes of spans and bodies of requests hold it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from sessions_app.core.payload import JsonValue, KeyTwice, compact_json, load_clear, load_finite
from sessions_app.core.shared_values import once_each

MAX_DEPTH = 100
"""Levels that are read; what is nested deeper stays text."""


def parsed(value: JsonValue) -> JsonValue:
    """JSON inside a text; the text itself when it holds none."""
    return _read(value)[0] if isinstance(value, str) and _JSON.match(value) else value


def key_given_twice(value: JsonValue) -> str | None:
    """The first key to which JSON inside a text gives two values, of which `parsed` has the last."""
    return _read(value)[1] if isinstance(value, str) and _JSON.match(value) else None


def arguments_in(value: JsonValue) -> JsonValue:
    """What a call gives, also where the text of its JSON object was written as JSON once more."""
    said = parsed(value)
    inner = parsed(said)
    return inner if isinstance(inner, dict) else said


_JSON = re.compile(r'\s*([\[{"\-0-9]|(true|false|null)\s*\Z)')
"""How a text begins that may hold JSON. Most others are told apart here, without an attempt that fails."""


@once_each
def _read(value: str) -> tuple[JsonValue, str | None]:
    stripped = value.strip()
    doubled = None
    try:
        try:
            found = load_clear(stripped)
        except KeyTwice as twice:
            found, doubled = load_finite(stripped), str(twice)
    except (ValueError, RecursionError):
        return value, None
    is_flat = stripped.count("[") + stripped.count("{") < MAX_DEPTH
    return (_whole_text(stripped, found), doubled) if is_flat or is_shallow(found) else (value, None)


def _whole_text(text: str, value: JsonValue) -> JsonValue:
    """JSON may spell half a surrogate pair, where a text was cut inside of a sign."""
    return without_half_pairs(value) if "\\u" in text else value


def without_half_pairs(value: JsonValue) -> JsonValue:
    """Half a surrogate pair becomes U+FFFD, like all that no text can be."""
    try:
        compact_json(value)
    except UnicodeEncodeError:
        written = json.dumps(value, ensure_ascii=False)
        return json.loads(written.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return value


def is_shallow(value: JsonValue, limit: int = MAX_DEPTH) -> bool:
    """Whether it is nested at most this deep."""
    level = [value]
    for _ in range(limit):
        level = [child for item in level for child in _children(item)]
        if not level:
            return True
    return False


def _children(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
