"""Strict JSON text: what we accept before anything else looks at a document.

The standard library alone would take `NaN`, keep the last of two equal keys and let lone surrogates
through; each of these would change a recording without a word, so each is a clear error here.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import NoReturn

from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.payload import JsonValue

# The closing quote is optional: without it an unfinished string would be tried again at every byte.
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_SQUARE, _OPENS = bytes.maketrans(b"{}", b"[]"), ord("[")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
NOT_JSON = "The document is not JSON: "
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one document may hold; the defaults are those of the HTTP API."""

    max_bytes: int = 20 * 1024 * 1024
    max_depth: int = 200
    max_values: int = 1_000_000
    """Members and items of all objects and lists together; each becomes a Python object."""
    max_steps: int = 20_000
    max_messages: int = 50_000
    """Different ones of all requests and histories of a run together."""


def load_strict(content: bytes, limits: Limits = Limits()) -> JsonValue:
    """Check the whole text and return its value; raises `RecordError` with the place in words."""
    if len(content) > limits.max_bytes:
        raise RecordTooLarge(f"The document has {len(content)} bytes; the limit is {limits.max_bytes}.")
    text = _decode(content)
    _check_count(content, limits.max_values)
    _check_depth(content, limits.max_depth)
    value = _parse(text)
    if _SURROGATE_ESCAPE.search(content):
        _refuse_lone_surrogates(value, "$")
    return value


def _decode(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise RecordError(f"The document is not UTF-8 (byte {error.start}).") from None
    if text.startswith("\ufeff"):
        raise RecordError("The document begins with a byte order mark; send plain UTF-8.")
    return text


def _check_count(content: bytes, max_values: int) -> None:
    """Counted before parsing: a few MB of `{},` would be millions of objects."""
    if content.count(b",") <= max_values:
        return
    if _STRINGS.sub(b"", content).count(b",") > max_values:
        raise RecordTooLarge(f"The document holds more than {max_values} values.")


def _check_depth(content: bytes, max_depth: int) -> None:
    if content.count(b"[") + content.count(b"{") <= max_depth:
        return
    depth = 0
    for bracket in _STRINGS.sub(b"", content).translate(_SQUARE, _NO_BRACKETS):
        depth += 1 if bracket == _OPENS else -1
        if depth > max_depth:
            raise RecordTooLarge(f"The document is nested deeper than {max_depth} levels.")


def _parse(text: str) -> JsonValue:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise RecordError(f"{NOT_JSON}{error.msg} ({place}).") from None
    except RecordError:
        raise
    except (ValueError, RecursionError):
        raise RecordError("The document holds a number or a nesting that is too long to read.") from None


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise RecordError(f"The key {twice[:80]!r} stands twice in one object.", field=twice[:80])
    return value


def _constant(name: str) -> NoReturn:
    raise RecordError(f"{name} is not JSON; send null or a string.")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise RecordError(f"The number {text[:40]} is out of range.")
    return number


def _refuse_lone_surrogates(value: JsonValue, path: str) -> None:
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_lone_surrogates(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, path)
            _refuse_lone_surrogates(item, f"{path}.{key}")


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RecordError("A text holds half of a surrogate pair.", field=path) from None
