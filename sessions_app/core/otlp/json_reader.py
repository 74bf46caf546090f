"""Messages and values out of OTLP's JSON, and of what senders make of it.

Source: OTLP specification, "JSON Protobuf Encoding": ids in hex, whole numbers as numbers or as text, enums as numbers;
Protobuf's own mapping: enums as names, fields in lowerCamelCase or as in the .proto file, null as if not sent. Of two
equal keys the last one counts.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from sessions_app.core.otlp.errors import OtlpError
from sessions_app.core.otlp.json_scan import check_json
from sessions_app.core.otlp.numbers import sayable
from sessions_app.core.otlp.reader import Reader, map_of
from sessions_app.core.otlp.schema import Field, Found, Kind, Message
from sessions_app.core.payload import JsonObject, JsonValue

_LONGEST_NUMBER = 40
"""Digits. Python reads thousands of them in quadratic time."""
_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{_LONGEST_NUMBER}}}")


class JsonReader(Reader):
    """Reads the objects of one JSON request."""

    def load(self, body: bytes) -> JsonObject:
        """The request as an object. Bytes that are not UTF-8 become U+FFFD; NaN and control characters are let in."""
        check_json(body, self.limits)
        try:
            value = msgspec.json.decode(body)
        except (ValueError, RecursionError):
            value = self._load_tolerantly(body)
        return _object(value, "the body")

    def _load_tolerantly(self, body: bytes) -> JsonValue:
        try:
            return json.loads(self._decoded(body), parse_int=_number_or_text, strict=False)
        except (ValueError, RecursionError):
            raise OtlpError("the body is not JSON") from None

    def _decoded(self, body: bytes) -> str:
        try:
            return body.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.replaced += 1
            return body.decode("utf-8-sig", "replace")

    def read(self, message: Message, raw: JsonValue) -> Found:
        found, by_name = message.blank(), message.by_name
        for name, value in _object(raw, message.name).items():
            field = by_name.get(name)
            if field is None or value is None:
                continue
            if field.many:
                self._add_all(field, found, _list(value, name))
            else:
                found[field.name] = _READ[field.kind](self, field, value)
        return found

    def _add_all(self, field: Field, found: Found, values: list[JsonValue]) -> None:
        found[field.name] = []
        for value in values:
            self.add(field, found, _READ[field.kind](self, field, value))

    def text(self, raw: JsonValue, name: str) -> str:
        if not isinstance(raw, str):
            raise OtlpError(f"{name} is not a text")
        try:
            raw.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            self.replaced += 1
            return raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return raw

    def attribute(self, raw: JsonValue, level: int) -> tuple[str, JsonValue]:
        pair = _object(raw, "an attribute")
        key = pair.get("key")
        return self.text("" if key is None else key, "the key of an attribute"), self.value(pair.get("value"), level)

    def value(self, raw: JsonValue, level: int) -> JsonValue:
        """What an `AnyValue` of this level holds; None for an empty one, and for kinds that are not known."""
        self.check_level(level)
        value: JsonValue = None
        for name, part in ({} if raw is None else _object(raw, "a value")).items():
            read = _VALUES.get(name)
            if read is not None and part is not None:
                value = read(self, part, level)
        return value

    def array(self, raw: JsonValue, level: int) -> list[JsonValue]:
        return [self.value(item, level + 1) for item in _items(raw, "arrayValue")]

    def object(self, raw: JsonValue, level: int) -> JsonValue:
        return map_of(self.attribute(item, level + 1) for item in _items(raw, "kvlistValue"))


def _number_or_text(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else digits


def _object(value: JsonValue, name: str) -> JsonObject:
    if not isinstance(value, dict):
        raise OtlpError(f"{name} is not an object")
    return value


def _list(value: JsonValue, name: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise OtlpError(f"{name} is not a list")
    return value


def _items(value: JsonValue, name: str) -> list[JsonValue]:
    values = _object(value, name).get("values")
    return [] if values is None else _list(values, f"values of {name}")


def _whole(value: JsonValue, name: str) -> int:
    """Out of a number or a text; `1.0` is whole as well."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**_LONGEST_NUMBER:
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**_LONGEST_NUMBER:
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    raise OtlpError(f"{name} is not a whole number")


def _count(value: JsonValue, name: str) -> int:
    number = _whole(value, name)
    if not 0 <= number < 2**32:
        raise OtlpError(f"{name} is out of range")
    return number


def _enum(value: JsonValue, field: Field) -> int:
    """A name that is not known is 0, as is a number later."""
    known = field.words.get(value) if isinstance(value, str) else None
    if known is not None:
        return known
    return 0 if isinstance(value, str) and not _WHOLE.fullmatch(value) else _whole(value, field.name)


def _double(value: JsonValue) -> JsonValue:
    """Out of a number or a text, such as "NaN"."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise OtlpError("doubleValue is not a number")
    try:
        return sayable(float(value))
    except (ValueError, OverflowError):
        raise OtlpError("doubleValue is not a number") from None


def _bool(value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise OtlpError("boolValue is not true or false")
    return value


def _bytes(value: JsonValue) -> JsonObject:
    """Base64 of either alphabet, padded or not, in the standard form."""
    text = value if isinstance(value, str) else "?"
    padded = text.rstrip("=").translate(_STANDARD)
    try:
        content = base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise OtlpError("bytesValue is not base64") from None
    return {"base64": base64.b64encode(content).decode()}


_STANDARD = str.maketrans("-_", "+/")
_READ: dict[Kind, Callable[[JsonReader, Field, Any], Any]] = {
    Kind.TEXT: lambda reader, field, raw: reader.text(raw, field.name),
    Kind.ID: lambda reader, field, raw: reader.text(raw, field.name).lower(),
    Kind.COUNT: lambda reader, field, raw: _count(raw, field.name),
    Kind.ENUM: lambda reader, field, raw: _enum(raw, field),
    Kind.TIME: lambda reader, field, raw: _whole(raw, field.name),
    Kind.VALUE: lambda reader, field, raw: reader.value(raw, 1),
    Kind.ATTRIBUTE: lambda reader, field, raw: reader.attribute(raw, 1),
    Kind.MESSAGE: lambda reader, field, raw: reader.read(field.message, raw),
    Kind.BLOCK: lambda reader, field, raw: raw,
    Kind.RECORD: lambda reader, field, raw: raw,
}
_SPELLINGS: dict[str, Callable[[JsonReader, Any, int], JsonValue]] = {
    "string_value": lambda reader, raw, level: reader.text(raw, "stringValue"),
    "bool_value": lambda reader, raw, level: _bool(raw),
    "int_value": lambda reader, raw, level: _whole(raw, "intValue"),
    "double_value": lambda reader, raw, level: _double(raw),
    "array_value": lambda reader, raw, level: reader.array(raw, level),
    "kvlist_value": lambda reader, raw, level: reader.object(raw, level),
    "bytes_value": lambda reader, raw, level: _bytes(raw),
}
_VALUES = _SPELLINGS | {name.replace("_v", "V"): read for name, read in _SPELLINGS.items()}
