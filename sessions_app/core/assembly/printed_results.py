"""Results of tools that the OpenAI Agents SDK tells in two ways: its span prints what the tool returned, and a request
holds what the SDK made of that for the model."""

from __future__ import annotations

import base64
import re

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue

_BASE64 = "base64"
_OBJECT = re.compile(r"\w+\((?=\w+=)")
"""The class of an object that was printed inside of something else."""


def is_made_of(told: JsonValue, printed: JsonValue) -> bool:
    """Whether the model was told what the span printed."""
    if isinstance(printed, dict) and printed.keys() == {_BASE64}:
        return _is_of_bytes(told, printed[_BASE64])
    if isinstance(told, str) and _OBJECT.search(told):
        return re.findall(r"\w+", _OBJECT.sub("", told)) == re.findall(r"\w+", str(printed))
    items, prints = parsed(told), printed if isinstance(printed, list) else [printed]
    if not isinstance(items, list) or not items or len(items) != len(prints):
        return False
    return all(isinstance(item, dict) and _is_of_print(item, each) for item, each in zip(items, prints, strict=True))


def _is_of_bytes(told: JsonValue, encoded: JsonValue) -> bool:
    try:
        return bool(told == repr(base64.b64decode(str(encoded), validate=True)))
    except ValueError:
        return False


def _is_of_print(item: JsonObject, printed: JsonValue) -> bool:
    """`{"type": "input_image", "image_url": "…"}` of `type='image' image_url='…'`."""
    said = {**item, "type": str(item.get("type")).removeprefix("input_")}
    return isinstance(printed, str) and all(f" {name}={value!r} " in f" {printed} " for name, value in said.items())
