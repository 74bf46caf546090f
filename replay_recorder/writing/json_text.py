"""Values as JSON text that the server takes: UTF-8, no NaN, no half surrogate pairs."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import math
import re
from collections import deque
from collections.abc import Mapping
from itertools import accumulate
from json.encoder import encode_basestring
from typing import Any

MAX_NAME = 1024
"""Longest name that a record may hold, in characters."""


class JsonText(str):
    """A text that is JSON already and is written as it stands."""

    __slots__ = ()


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_MAX_DEPTH = 100
"""Levels of a value; the server takes 200 for the whole record."""
_MAX_NODES = 200_000
"""Values inside one that is no JSON: objects may refer to each other in more ways than there is time for."""
_SMALL = 1 << 53
_MAX_BITS = 14_000
"""Of a whole number; the server takes 4,300 digits."""
_BLOCK = 2_100
"""Bytes; a number that is too long fills at least one block of this size, wherever it begins."""
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
"""A string of JSON: arguments that a model sent are one, and may hold levels of their own."""
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LEVELS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def encode(value: Any) -> str:
    """JSON on one line without tabs; `JsonText` inside stays as it is, and what JSON does not know becomes its nearest
    form."""
    kind = type(value)
    if kind is JsonText:
        return str(value).replace("\n", " ").replace("\r", " ").replace("\t", " ")
    if kind is str and value.isascii():
        return str(encode_basestring(value))
    if kind is int and -_SMALL < value < _SMALL:
        return str(value)
    if kind is float and math.isfinite(value):
        return repr(value)
    if isinstance(value, (dict, list, tuple)):
        try:
            if _holds_text(value, 0):
                return _mixed(value)
        except RecursionError:
            return dumps(jsonable(value))
    return dumps(value)


def _holds_text(value: Any, depth: int) -> bool:
    """Whether there is `JsonText` inside, at any depth; `RecursionError` where the server would not follow."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, JsonText) or (isinstance(item, (dict, list, tuple)) and _holds_text(item, depth + 1)):
            return True
    return False


def _mixed(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{dumps(str(key))}:{encode(item)}" for key, item in value.items()) + "}"
    return "[" + ",".join(map(encode, value)) + "]"


def dumps(value: Any) -> str:
    """Exact for what JSON knows; everything else goes through `jsonable` first."""
    try:
        return exact(value)
    except (TypeError, ValueError, RecursionError):
        return _ENCODER.encode(jsonable(value))


def exact(value: Any) -> str:
    """Raises `TypeError`, `ValueError` or `RecursionError` for what JSON in UTF-8 or the server does not take."""
    return within_limits(_ENCODER.encode(value))


def within_limits(text: str) -> str:
    """JSON that somebody else wrote; `ValueError` where the server would refuse the record for it.

    Values are counted with the signs inside of strings: too strict at worst, and the way of `jsonable` loses nothing.
    """
    if len(text) <= _BLOCK and text.isascii() and text.count("[") + text.count("{") <= _MAX_DEPTH:
        return text
    content = text.encode()
    brackets = content.count(b"[") + content.count(b"{")
    if brackets > _MAX_DEPTH and _depth(_TEXT.sub(b"", content)) > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    if brackets + content.count(b",") > 2 * _MAX_NODES:
        raise ValueError("too many values")
    if any(content[at : at + _BLOCK].isdigit() for at in range(0, len(content) - _BLOCK, _BLOCK)):
        raise ValueError("a number is too long")
    return text


def _depth(content: bytes) -> int:
    return max(accumulate(map(_LEVELS.__getitem__, content.translate(None, _NO_BRACKETS))))


def jsonable(value: Any) -> Any:
    """The value in JSON's types: objects by their fields, bytes in base64, the rest by `str`.

    Ends for every value: what refers to itself, lies too deep or is too much is replaced by words that say so.
    """
    return _Walk().turned(value, 0)


class _Walk:
    def __init__(self) -> None:
        self._left = _MAX_NODES

    def turned(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if value is None or isinstance(value, (int, float, str)):
            return _scalar(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return {"base64": base64.b64encode(bytes(value)).decode()}
        if depth > _MAX_DEPTH or self._left < 0:
            return "… nested too deeply to record" if depth > _MAX_DEPTH else "… too much to record"
        if isinstance(value, Mapping):
            return {whole_text(_text_of(key)): self.turned(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.turned(item, depth + 1) for item in value]
        return self._of_object(value, depth)

    def _of_object(self, value: Any, depth: int) -> Any:
        # Reading an object may fail, a model may refuse to be dumped, and anything may be called by this name.
        with contextlib.suppress(Exception):
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                fields = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
                return self.turned(fields, depth + 1)
            if hasattr(type(value), "model_dump"):
                said = vars(value) if holds_iterator(value) else value.model_dump(mode="json")
                return self.turned(said, depth + 1)
        return whole_text(_text_of(value))


def holds_iterator(value: Any) -> bool:
    """Whether writing the value would read something that can be read once, which is the agent's to read."""
    waiting, looked_at = deque([value]), 0
    while waiting and looked_at < _LOOKED_AT:
        each, looked_at = waiting.popleft(), looked_at + 1
        if type(each) in _PLAIN:
            continue
        if isinstance(each, (dict, Mapping)):
            waiting.extend(each.values())
        elif isinstance(each, (list, tuple, set, frozenset, deque)):
            waiting.extend(each)
        elif hasattr(type(each), "__next__"):
            return True
        elif _is_made_of_fields(each):
            waiting.extend(vars(each).values())
    return False


_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_LOOKED_AT = 100_000
"""Values; a larger one is taken for plain data."""


def _is_made_of_fields(value: Any) -> bool:
    """A dataclass or a model of pydantic."""
    is_known = hasattr(type(value), "__dataclass_fields__") or hasattr(type(value), "model_dump")
    return is_known and hasattr(value, "__dict__")


def _scalar(value: bool | int | float | str | None) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return hex(value)
    return value


def _text_of(value: Any) -> str:
    """Objects may fail to say what they are."""
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def whole_text(text: str) -> str:
    """Half a surrogate pair is no text in UTF-8; it becomes the replacement character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def name(value: Any) -> str | None:
    """A name as a record takes it: without U+0000 and at most `MAX_NAME` characters."""
    if value is None:
        return None
    if type(value) is str and value.isascii() and len(value) <= MAX_NAME and "\x00" not in value:
        return value
    return whole_text(str(value)).replace("\x00", "\ufffd")[:MAX_NAME]


def identifier(value: Any) -> str | None:
    """An id as a record takes it: printable, at most 512 characters; None when nothing is left."""
    text = "".join(sign for sign in whole_text(str(value or "")) if sign.isprintable())[:512]
    return text if text.strip() else None


def value_of(content: Any) -> Any:
    """A field of the type *value*: bytes in base64, and an object that looks like bytes wrapped."""
    if isinstance(content, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(content)).decode()}
    if isinstance(content, dict) and "base64" in content and set(content) <= {"base64", "media_type"}:
        text = dumps(content).encode()
        return {"base64": base64.b64encode(text).decode(), "media_type": "application/json"}
    return content


def unmistakable(text: str) -> JsonText:
    """JSON text of a field of the type *value*; an object that looks like bytes is wrapped."""
    is_like_bytes = text.startswith("{") and '"base64"' in text
    return JsonText(dumps(value_of(json.loads(text))) if is_like_bytes else text)
