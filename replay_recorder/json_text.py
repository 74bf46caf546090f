"""Values as JSON text that the server takes: UTF-8, no NaN, no half surrogate pairs."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

MAX_NAME = 1024
"""Longest name that a record may hold, in characters."""


class JsonText(str):
    """A text that is JSON already and is written as it stands."""

    __slots__ = ()


def encode(value: Any) -> str:
    """JSON on one line. `JsonText` inside stays as it is; what JSON does not know becomes its nearest form."""
    if isinstance(value, JsonText):
        return value.replace("\n", " ").replace("\r", " ")
    if isinstance(value, dict) and _holds_text(value.values()):
        return "{" + ",".join(f"{encode(str(key))}:{encode(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list) and _holds_text(value):
        return "[" + ",".join(map(encode, value)) + "]"
    return dumps(value)


def _holds_text(values: Any) -> bool:
    return any(isinstance(value, JsonText | dict | list) for value in values)


def dumps(value: Any) -> str:
    """Exact for what JSON knows; everything else goes through `jsonable` first."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text


def jsonable(value: Any, depth: int = 0) -> Any:
    """The value in JSON's types: objects by their fields, bytes in base64, the rest by `str`."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return whole_text(value)
    if depth > 100:
        return "… nested too deeply to record"
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, Mapping):
        return {whole_text(str(key)): jsonable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item, depth + 1) for item in value]
    return _of_object(value, depth)


def _of_object(value: Any, depth: int) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
        return jsonable(fields, depth + 1)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return jsonable(dump(mode="json"), depth + 1)
    return whole_text(str(value))


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
