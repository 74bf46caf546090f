"""Messages and values out of protobuf.

Read by hand, for one bad span must not take the others with it, text that is not UTF-8 is repaired and not refused, and
nothing may be built before it is counted. Of a field that is sent twice the last one counts.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from typing import Any

from sessions_app.core.otlp.errors import OtlpError
from sessions_app.core.otlp.limits import OtlpLimits
from sessions_app.core.otlp.numbers import sayable
from sessions_app.core.otlp.reader import Reader
from sessions_app.core.otlp.schema import Field, Found, Kind, Message
from sessions_app.core.otlp.wire import FieldBudget, fields
from sessions_app.core.payload import JsonValue

_KEY, _VALUE = 0x0A, 0x12
"""Tags of a `KeyValue`."""
_ITEM = 0x0A
"""Tag of `values` in an `ArrayValue` and a `KeyValueList`."""
_LONGEST_ID = 64
_32_BITS = 2**32 - 1


class ProtobufReader(Reader):
    """Reads views of one protobuf request."""

    def __init__(self, limits: OtlpLimits) -> None:
        super().__init__(limits)
        self._budget = FieldBudget(limits.max_fields)

    def read(self, message: Message, raw: memoryview) -> Found:
        found, by_tag = message.blank(), message.by_tag
        for tag, value in fields(raw, self._budget):
            field = by_tag.get(tag)
            if field is None:
                _check_number(tag)
            elif field.many:
                self.add(field, found, _READ[field.kind](self, field, value))
            else:
                found[field.name] = _READ[field.kind](self, field, value)
        return found

    def text(self, raw: memoryview) -> str:
        try:
            return str(raw, "utf-8")
        except UnicodeDecodeError:
            self.replaced += 1
            return str(raw, "utf-8", "replace")

    def attribute(self, raw: memoryview, level: int) -> tuple[str, JsonValue]:
        key, value = "", None
        for tag, part in fields(raw, self._budget):
            if tag == _KEY:
                key = self.text(part)  # type: ignore[arg-type]  # the tag says that it is sized
            elif tag == _VALUE:
                value = self.value(part, level)  # type: ignore[arg-type]
        return key, value

    def value(self, raw: memoryview, level: int) -> JsonValue:
        """What an `AnyValue` of this level holds; None for an empty one, and for kinds that are not known."""
        self.check_level(level)
        value: JsonValue = None
        for tag, part in fields(raw, self._budget):
            read = _VALUES.get(tag)
            if read is not None:
                value = read(self, part, level)
        return value

    def array(self, raw: memoryview, level: int) -> list[JsonValue]:
        return [self.value(part, level + 1) for part in self._items(raw)]

    def object(self, raw: memoryview, level: int) -> dict[str, JsonValue]:
        return dict(self.attribute(part, level + 1) for part in self._items(raw))

    def _items(self, raw: memoryview) -> Iterator[memoryview]:
        for tag, part in fields(raw, self._budget):
            if tag == _ITEM:
                yield part  # type: ignore[misc]


def _check_number(tag: int) -> None:
    if tag < 8:
        raise OtlpError("malformed protobuf: a field without a number")


def _hex(raw: memoryview) -> str:
    if len(raw) > _LONGEST_ID:
        raise OtlpError("an id is far too long")
    return raw.hex()


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _double(number: int) -> JsonValue:
    return sayable(struct.unpack("<d", number.to_bytes(8, "little"))[0])


_READ: dict[Kind, Callable[[ProtobufReader, Field, Any], Any]] = {
    Kind.TEXT: lambda reader, field, raw: reader.text(raw),
    Kind.ID: lambda reader, field, raw: _hex(raw),
    Kind.COUNT: lambda reader, field, raw: raw & _32_BITS,
    Kind.ENUM: lambda reader, field, raw: raw & _32_BITS,
    Kind.TIME: lambda reader, field, raw: raw,
    Kind.VALUE: lambda reader, field, raw: reader.value(raw, 1),
    Kind.ATTRIBUTE: lambda reader, field, raw: reader.attribute(raw, 1),
    Kind.MESSAGE: lambda reader, field, raw: reader.read(field.message, raw),
    Kind.BLOCK: lambda reader, field, raw: raw,
    Kind.RECORD: lambda reader, field, raw: raw,
}
_VALUES: dict[int, Callable[[ProtobufReader, Any, int], JsonValue]] = {
    0x0A: lambda reader, raw, level: reader.text(raw),
    0x10: lambda reader, raw, level: bool(raw),
    0x18: lambda reader, raw, level: _signed(raw),
    0x21: lambda reader, raw, level: _double(raw),
    0x2A: lambda reader, raw, level: reader.array(raw, level),
    0x32: lambda reader, raw, level: reader.object(raw, level),
    0x3A: lambda reader, raw, level: {"base64": base64.b64encode(raw).decode()},
}
"""By tag of `AnyValue`: string, bool, int, double, array, kvlist, bytes."""
