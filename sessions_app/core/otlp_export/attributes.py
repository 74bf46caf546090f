"""OTLP JSON: attributes, events and the text of a request.

Source: opentelemetry-proto, `common/v1/common.proto`, and the JSON mapping of the OTLP specification: ids in hex,
64-bit integers as text.
"""

from __future__ import annotations

import math
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.values import write_value
from sessions_app.core.json_text import load_strict
from sessions_app.core.payload import JSON, TEXT, JsonObject, JsonValue, Payload, compact_json

Value = str | bool | int | float | list[str] | None


def attribute_list(values: Mapping[str, Value]) -> list[JsonObject]:
    """Those that are said; None says nothing."""
    return [{"key": key, "value": any_value(value)} for key, value in values.items() if value is not None]


def any_value(value: Value) -> JsonObject:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value if math.isfinite(value) else str(value)}
        case list():
            return {"arrayValue": {"values": [any_value(item) for item in value]}}
        case _:
            return {"stringValue": value}


def json_attribute(value: JsonValue) -> str | None:
    """A structured value as JSON text, as the conventions allow for spans."""
    return None if value is None else compact_json(value).decode()


def payload_text(payload: Payload | None) -> str | None:
    """The recorded text, or JSON as it was spelled; bytes in the base64 in which a model is told what a tool gave."""
    if payload is None:
        return None
    is_text = payload.media_type in (TEXT, JSON)
    return (payload.content if is_text else urlsafe_b64encode(payload.content)).decode()


def value_of(text: str, media_type: str) -> bytes:
    """What `payload_text` wrote, as a value of a record; raises `RecordError` where it is no JSON and should be."""
    content = text.encode()
    if media_type == JSON:
        load_strict(content)
    elif media_type != TEXT:
        content = _bytes_in(text)
    return write_value(Payload(content=content, media_type=media_type))


def _bytes_in(text: str) -> bytes:
    try:
        return b64decode(text, altchars=b"-_", validate=True)
    except ValueError:
        raise RecordError("An exported value is not base64.") from None
