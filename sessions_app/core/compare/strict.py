"""Strict sameness of JSON values.

Python says `1 == 1.0 == True`; a recording that changed from one to another has changed. So has one whose keys stand
in another order: a model reads text, and that is another text (decision 012).
"""

from __future__ import annotations

import json
from decimal import Decimal
from math import isfinite
from typing import Any

from sessions_app.core.compare.partial import is_truncated
from sessions_app.core.payload import JsonValue, SpelledFloat, spelled_int


def read_json(text: str | bytes) -> JsonValue:
    """Like `json.loads`, but keeps the spelling of numbers and refuses what would be lost.

    Raises ValueError for repeated keys, `NaN`, numbers out of range and nesting too deep to read.
    """
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return value


_DECODER = json.JSONDecoder(
    parse_float=SpelledFloat, parse_int=spelled_int, parse_constant=_refuse, object_pairs_hook=_object
)


def read_json_text(text: str) -> JsonValue | None:
    """The object or list that a text spells; None when the text is just text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return read_json(text)
    except ValueError:
        return None


def is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_leaf(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values that are not both filled containers are the same to the letter."""
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right) or _digits(left) == _digits(right)
    return type(left) is type(right) and bool(left == right)


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Whether both would be written as the same JSON: numbers as they are spelled, keys in their order.

    Without recursion: a text that a tool gave may be nested as deep as it likes.
    """
    waiting = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            if list(one) != list(other):
                return False
            waiting += zip(one.values(), other.values(), strict=True)
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            waiting += zip(one, other, strict=True)
        elif not same_leaf(one, other):
            return False
    return True


class Interner:
    """Gives equal values equal numbers; each container is looked at once.

    A truncated value equals only itself. The values must not change while the interner is in use:
    containers are remembered by identity. With `any_key_order` objects are equal whatever the order of their keys:
    for what people write, and for states.
    """

    def __init__(self, *, any_key_order: bool = False) -> None:
        self._any_key_order = any_key_order
        self._numbers: dict[Any, int] = {}
        self._seen: dict[int, tuple[int, int]] = {}

    def number(self, value: JsonValue) -> int:
        return self._look_at(value)[0]

    def leaves(self, value: JsonValue) -> int:
        """Scalars and empty containers in the value."""
        return self._look_at(value)[1]

    def same(self, left: JsonValue, right: JsonValue) -> bool:
        return self.number(left) == self.number(right)

    def _look_at(self, value: JsonValue) -> tuple[int, int]:
        if not isinstance(value, dict | list):
            return self._intern(_leaf_key(value)), 1
        if id(value) not in self._seen:
            self._visit(value)
        return self._seen[id(value)]

    def _visit(self, root: JsonValue) -> None:
        """Bottom up and without recursion, so that depth is no matter."""
        stack = [(root, False)]
        while stack:
            value, is_ready = stack.pop()
            if id(value) in self._seen:
                continue
            if is_ready:
                self._seen[id(value)] = self._container(value)
                continue
            stack.append((value, True))
            children = value.values() if isinstance(value, dict) else value
            stack.extend((child, False) for child in children if isinstance(child, dict | list))

    def _container(self, value: JsonValue) -> tuple[int, int]:
        if is_truncated(value):
            return self._intern((dict, id(value))), 1
        children = value.values() if isinstance(value, dict) else value
        looked_at = [self._look_at(child) for child in children]
        numbers = tuple(number for number, _ in looked_at)
        leaves = sum(count for _, count in looked_at) or 1
        if isinstance(value, list):
            return self._intern((list, numbers)), leaves
        members = zip(value, numbers, strict=True)
        return self._intern((dict, frozenset(members) if self._any_key_order else tuple(members))), leaves

    def _intern(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _digits(value: float) -> object:
    """The written digits and their place: where a number begins to be written with an exponent, and how, is the
    encoder's and not the number's (`1e-07`, `1e-7` and `0.0000001` are one, `1.0` and `1.00` two)."""
    return Decimal(repr(value)).as_tuple() if isfinite(value) else repr(value)


def _leaf_key(value: JsonValue) -> Any:
    if isinstance(value, float):
        return float, _digits(value)
    return type(value), value


def count_leaves(value: JsonValue) -> int:
    """Scalars and empty containers in a value: the fields that a comparison looks at."""
    count, stack = 0, [value]
    while stack:
        value = stack.pop()
        if value and isinstance(value, dict | list):
            stack.extend(value.values() if isinstance(value, dict) else value)
        else:
            count += 1
    return count


def count_leaves_of_text(content: bytes) -> int:
    """`count_leaves` of JSON text without reading it: one more than its commas outside strings."""
    if b"\\" in content:
        content = content.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(content.split(b'"')[::2]).count(b",") + 1
