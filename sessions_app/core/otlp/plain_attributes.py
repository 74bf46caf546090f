"""Attributes as senders write them: a name, then one value of a plain kind, and nothing else.

Nearly all are such, and reading them field by field takes four times as long. Positions only grow here, so where the
last one is the end of a part, nothing beyond the part was looked at. Whatever is not plain, be it right or wrong, is
left to the reader that knows every case.
"""

from __future__ import annotations

from struct import Struct

from sessions_app.core.otlp.errors import OtlpError
from sessions_app.core.otlp.numbers import sayable, signed
from sessions_app.core.otlp.wire import varint
from sessions_app.core.payload import JsonValue

DEPTH = 2
"""Levels of a plain value: a list of texts or numbers."""
_KEY, _VALUE, _ITEM = 0x0A, 0x12, 0x0A
_TEXT, _BOOL, _INT, _DOUBLE, _ARRAY = 0x0A, 0x10, 0x18, 0x21, 0x2A
_double = Struct("<d").unpack_from

Pair = tuple[str, JsonValue]


class _NotPlain(Exception):
    """Something that the other reader has to look at."""


def plain_attributes(body: bytes, at: int, end: int, most: int) -> tuple[list[Pair], int]:
    """The plain ones among the fields from here on that have the tag of the first, and where they end."""
    pairs: list[Pair] = []
    tag, after = body[at], at
    try:
        for _ in range(most):  # one function: a call for each size would cost a third of a long text
            if body[after] != tag:
                break
            size, at = body[after + 1], after + 2
            if size > 127:
                size, at = (size & 127 | body[at] << 7, at + 1) if body[at] < 128 else varint(body, at - 1, end)
            stop = at + size
            if stop > end or body[at] != _KEY:
                break
            start = at + 2
            at = start + body[at + 1]
            if at - start > 127 or body[at] != _VALUE:
                break
            name = body[start:at].decode()
            size, at = body[at + 1], at + 2
            if size > 127:
                size, at = (size & 127 | body[at] << 7, at + 1) if body[at] < 128 else varint(body, at - 1, stop)
            if at + size != stop:
                break
            pairs.append((name, _value(body, at, stop)))
            after = stop
    except (_NotPlain, IndexError, UnicodeDecodeError, OtlpError):
        pass
    return pairs, after


def fields_of(pairs: list[Pair]) -> int:
    """How many fields and messages they are."""
    return 6 * len(pairs) + sum([1 + 3 * len(value) for _, value in pairs if isinstance(value, list)])


def _value(body: bytes, at: int, end: int) -> JsonValue:
    kind = body[at]
    if kind == _TEXT:
        size, at = body[at + 1], at + 2
        if size > 127:
            size, at = (size & 127 | body[at] << 7, at + 1) if body[at] < 128 else varint(body, at - 1, end)
        if at + size == end:
            return body[at:end].decode()
    elif kind == _INT:
        number, at = varint(body, at + 1, end)
        if at == end:
            return signed(number)
    elif kind == _ARRAY:
        size, at = varint(body, at + 1, end)
        if at + size == end:
            return _list(body, at, end)
    elif kind == _DOUBLE and at + 9 == end:
        return sayable(_double(body, at + 1)[0])
    elif kind == _BOOL and at + 2 == end and body[at + 1] < 128:
        return body[at + 1] != 0
    raise _NotPlain


def _list(body: bytes, at: int, end: int) -> list[JsonValue]:
    values = []
    while at < end:
        tag = body[at]
        size, at = varint(body, at + 1, end)
        if tag != _ITEM or at + size > end or body[at] == _ARRAY:
            raise _NotPlain
        values.append(_value(body, at, at + size))
        at += size
    return values
