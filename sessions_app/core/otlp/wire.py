"""Protobuf's wire format: fields one after the other, without knowing what they mean.

Source: protobuf.dev, "Encoding". Groups, which proto3 does not have, count as malformed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.otlp.errors import OtlpError, OtlpTooLarge

_64_BITS = 2**64 - 1
_VARINT, _FIXED64, _SIZED, _FIXED32 = 0, 1, 2, 5


@dataclass(slots=True)
class FieldBudget:
    """How many fields and messages may still be read of one request."""

    left: int


def fields(message: memoryview, budget: FieldBudget) -> Iterator[tuple[int, int | memoryview]]:
    """The tag (number and wire type) and the value of each field: an unsigned number, or a view of its bytes.

    Raises `OtlpError` where the bytes are malformed, `OtlpTooLarge` once the budget is spent.
    """
    allowed = budget.left
    left = allowed - 1
    at, end = 0, len(message)
    try:
        while at < end:
            left -= 1
            if left < 0:
                raise OtlpTooLarge("the request holds too many fields; send smaller batches")
            tag = message[at]
            at += 1
            if tag > 127:  # nearly all are one byte, and a call for each would cost a third of the time
                tag, at = _varint(message, at - 1)
            wire_type = tag & 7
            if wire_type == _SIZED:
                size, at = _varint(message, at)
                yield tag, _slice(message, at, size)
                at += size
            elif wire_type == _VARINT:
                number, at = _varint(message, at)
                yield tag, number
            else:
                size = _fixed_size(wire_type)
                yield tag, int.from_bytes(_slice(message, at, size), "little")
                at += size
    finally:
        budget.left -= allowed - left


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """The number, and where the next byte is."""
    if at < len(message) and message[at] < 128:
        return message[at], at + 1
    value = 0
    for shift, byte in zip(range(0, 70, 7), message[at : at + 10], strict=False):
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _64_BITS, at
    raise OtlpError("malformed protobuf: a number without an end")


def _fixed_size(wire_type: int) -> int:
    if wire_type == _FIXED64:
        return 8
    if wire_type == _FIXED32:
        return 4
    raise OtlpError(f"malformed protobuf: wire type {wire_type}")


def _slice(message: memoryview, at: int, size: int) -> memoryview:
    found = message[at : at + size]
    if len(found) < size:
        raise _cut_off()
    return found


def _cut_off() -> OtlpError:
    return OtlpError("malformed protobuf: it ends in the middle of a field")
