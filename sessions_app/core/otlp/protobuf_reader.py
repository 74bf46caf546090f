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
from sessions_app.core.otlp.numbers import sayable, signed
from sessions_app.core.otlp.plain_attributes import DEPTH, fields_of, plain_attributes
from sessions_app.core.otlp.reader import Reader, map_of
from sessions_app.core.otlp.schema import Field, Found, Kind, Message
from sessions_app.core.otlp.wire import FieldBudget, Part, field_at, fields, too_many_fields
from sessions_app.core.payload import JsonValue

_KEY, _VALUE = 0x0A, 0x12
"""Tags of a `KeyValue`."""
_ITEM = 0x0A
"""Tag of `values` in an `ArrayValue` and a `KeyValueList`."""
_LONGEST_ID = 64
_32_BITS = 2**32 - 1


class ProtobufReader(Reader):
    """Reads parts of one protobuf request."""

    def __init__(self, limits: OtlpLimits, body: bytes) -> None:
        super().__init__(limits)
        self.whole = (0, len(body))
        self._body = body
        self._budget = FieldBudget(limits.max_fields)

    def read(self, message: Message, raw: Part) -> Found:
        # The loop of `fields` again: a generator between would cost a sixth of the time.
        found, by_tag, body = message.blank(), message.by_tag, self._body
        plain_tag = message.attributes_tag if self._may_be_plain(raw) else None
        allowed, used = self._budget.left, 1
        at, end = raw
        try:
            while at < end:
                if body[at] == plain_tag and (at := self._add_plain(found, at, end)) == end:
                    break
                used += 1
                if used > allowed:
                    raise too_many_fields()
                tag, value, at = field_at(body, at, end)
                field = by_tag.get(tag)
                if field is None:
                    _check_number(tag)
                elif field.many:
                    self.add(field, found, _READ[field.kind](self, field, value))
                else:
                    found[field.name] = _READ[field.kind](self, field, value)
        finally:
            self._budget.left -= used
        return found

    def _may_be_plain(self, raw: Part) -> bool:
        """No limit can be reached in it: there are fewer fields and messages in it than bytes."""
        start, end = raw
        return end - start < self._budget.left and self.limits.max_depth >= DEPTH

    def _add_plain(self, found: Found, at: int, end: int) -> int:
        """Where the plain attributes end that begin here."""
        items = found["attributes"] = found["attributes"] or []
        pairs, at = plain_attributes(self._body, at, end, self.limits.max_items - len(items))
        items += pairs
        self._budget.left -= fields_of(pairs)
        return at

    def text(self, raw: Part) -> str:
        start, end = raw
        try:
            return self._body[start:end].decode()
        except UnicodeDecodeError:
            self.replaced += 1
            return self._body[start:end].decode("utf-8", "replace")

    def content(self, raw: Part) -> bytes:
        start, end = raw
        return self._body[start:end]

    def attribute(self, raw: Part, level: int) -> tuple[str, JsonValue]:
        key, value = "", None
        for tag, part in fields(self._body, raw, self._budget):
            if tag == _KEY:
                key = self.text(part)  # type: ignore[arg-type]  # the tag says that it is sized
            elif tag == _VALUE:
                value = self.value(part, level)  # type: ignore[arg-type]
        return key, value

    def value(self, raw: Part, level: int) -> JsonValue:
        """What an `AnyValue` of this level holds; None for an empty one, and for kinds that are not known."""
        self.check_level(level)
        value: JsonValue = None
        for tag, part in fields(self._body, raw, self._budget):
            read = _VALUES.get(tag)
            if read is not None:
                value = read(self, part, level)
        return value

    def array(self, raw: Part, level: int) -> list[JsonValue]:
        return [self.value(part, level + 1) for part in self._items(raw)]

    def object(self, raw: Part, level: int) -> JsonValue:
        return map_of(self.attribute(part, level + 1) for part in self._items(raw))

    def _items(self, raw: Part) -> Iterator[Part]:
        for tag, part in fields(self._body, raw, self._budget):
            if tag == _ITEM:
                yield part  # type: ignore[misc]


def _check_number(tag: int) -> None:
    if tag < 8:
        raise OtlpError("malformed protobuf: a field without a number")


def _hex(raw: bytes) -> str:
    if len(raw) > _LONGEST_ID:
        raise OtlpError("an id is far too long")
    return raw.hex()


def _double(number: int) -> JsonValue:
    return sayable(struct.unpack("<d", number.to_bytes(8, "little"))[0])


_READ: dict[Kind, Callable[[ProtobufReader, Field, Any], Any]] = {
    Kind.TEXT: lambda reader, field, raw: reader.text(raw),
    Kind.ID: lambda reader, field, raw: _hex(reader.content(raw)),
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
    0x18: lambda reader, raw, level: signed(raw),
    0x21: lambda reader, raw, level: _double(raw),
    0x2A: lambda reader, raw, level: reader.array(raw, level),
    0x32: lambda reader, raw, level: reader.object(raw, level),
    0x3A: lambda reader, raw, level: {"base64": base64.b64encode(reader.content(raw)).decode()},
}
"""By tag of `AnyValue`: string, bool, int, double, array, kvlist, bytes."""
