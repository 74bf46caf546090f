"""How a payload stands in a record: docs/record-format.md, Values.

A string is the text itself, `{"base64", "media_type"}` is bytes, any other JSON value is kept as it is
spelled. A JSON value that would be mistaken for one of the first two is written as bytes of JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import replace

from sessions_app.core.errors import RecordError
from sessions_app.core.json_text import load_strict
from sessions_app.core.payload import BINARY, JSON, TEXT, JsonObject, Payload, compact_json

_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;[\x20-\x7e]*)?", re.ASCII)


def write_value(payload: Payload) -> bytes:
    """JSON text from which `read_value` makes an equal payload."""
    if payload.is_text:
        return compact_json(payload.content.decode())
    if payload.is_json and not _is_mistakable(payload.content):
        return payload.content
    encoded = base64.b64encode(payload.content).decode()
    return compact_json({"base64": encoded, "media_type": payload.media_type})


def read_value(slice_: bytes, path: str) -> Payload:
    """`slice_` is one JSON value as spelled in the document, `path` the field where it stands."""
    wrapper = _wrapper(slice_)
    return message_value(slice_) if wrapper is None else _bytes_of(wrapper, path)


def message_value(slice_: bytes) -> Payload:
    """A value inside a message, where an object with the key `base64` is an object like any other."""
    return Payload.of_text(json.loads(slice_)) if slice_[:1] == b'"' else Payload(content=slice_)


def _is_mistakable(content: bytes) -> bool:
    return content[:1] == b'"' or content != content.strip() or _wrapper(content) is not None


def _wrapper(slice_: bytes) -> JsonObject | None:
    if slice_[:1] != b"{" or b"base64" not in slice_:
        return None
    value = json.loads(slice_)
    is_wrapper = "base64" in value and value.keys() <= {"base64", "media_type"}
    return value if is_wrapper and all(isinstance(item, str) for item in value.values()) else None


def _bytes_of(wrapper: JsonObject, path: str) -> Payload:
    media_type = wrapper.get("media_type", BINARY)
    if len(media_type) > 255 or not _MEDIA_TYPE.fullmatch(media_type):
        raise RecordError(f"{path}.media_type is not a media type.", field=f"{path}.media_type")
    try:
        content = base64.b64decode(wrapper["base64"], validate=True)
    except (binascii.Error, ValueError):
        raise RecordError(f"{path}.base64 is not base64.", field=f"{path}.base64") from None
    payload = Payload(content=content, media_type=media_type)
    return payload if _is_what_it_says(payload) else replace(payload, media_type=BINARY)


def _is_what_it_says(payload: Payload) -> bool:
    """Text and JSON are read again later and copied into records. A body that was cut off is neither,
    whatever its content type was: it is kept as bytes."""
    try:
        if payload.media_type == TEXT:
            payload.content.decode()
        elif payload.media_type == JSON:
            load_strict(payload.content)
    except (ValueError, RecordError):
        return False
    return True
