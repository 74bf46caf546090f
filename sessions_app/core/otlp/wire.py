"""Protobuf's wire format: fields one after the other, without knowing what they mean.

Source: protobuf.dev, "Encoding". Groups, which proto3 does not have, count as malformed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.otlp.errors import OtlpError, OtlpTooLarge

Part = tuple[int, int]
"""Bytes of a body: where they begin and where they end."""
_64_BITS = 2**64 - 1
_VARINT, _FIXED64, _SIZED, _FIXED32 = 0, 1, 2, 5


@dataclass(slots=True)
class FieldBudget:
    """How many fields and messages may still be read of one request."""

    left: int


def fields(body: bytes, message: Part, budget: FieldBudget) -> Iterator[tuple[int, int | Part]]:
    """The tag (number and wire type) and the value of each field: an unsigned number, or the part that it fills.

    Raises `OtlpError` where the bytes are malformed, `OtlpTooLarge` once the budget is spent.
    """
    allowed, used = budget.left, 1
    at, end = message
    try:
        while at < end:
            used += 1
            if used > allowed:
                raise too_many_fields()
            tag, value, at = field_at(body, at, end)
            yield tag, value
    finally:
        budget.left -= used


def too_many_fields() -> OtlpTooLarge:
    return OtlpTooLarge("the request holds too many fields; send smaller batches")


def field_at(body: bytes, at: int, end: int) -> tuple[int, int | Part, int]:
    """The tag and the value of the field that begins here, and where it ends."""
    tag = body[at]
    at += 1
    if tag > 127:  # nearly all tags and sizes are one byte, and a call for each would cost a third of the time
        tag, at = varint(body, at - 1, end)
    wire_type = tag & 7
    if wire_type == _SIZED:
        size, start = (body[at], at + 1) if at < end and body[at] < 128 else varint(body, at, end)
        at = start + size
        if at <= end:
            return tag, (start, at), at
    elif wire_type == _VARINT:
        number, at = varint(body, at, end)
        return tag, number, at
    else:
        start, at = at, at + _fixed_size(wire_type)
        if at <= end:
            return tag, int.from_bytes(body[start:at], "little"), at
    raise OtlpError("malformed protobuf: it ends in the middle of a field")


def varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    """The number, and where the next byte is."""
    value = shift = 0
    while at < end and shift < 70:
        byte = body[at]
        at += 1
        if byte < 128:
            return (value | byte << shift) & _64_BITS, at
        value |= (byte & 127) << shift
        shift += 7
    raise OtlpError("malformed protobuf: a number without an end")


def _fixed_size(wire_type: int) -> int:
    if wire_type == _FIXED64:
        return 8
    if wire_type == _FIXED32:
        return 4
    raise OtlpError(f"malformed protobuf: wire type {wire_type}")
