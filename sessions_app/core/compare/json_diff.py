"""Field-level differences of two JSON values.

Fields are visited in the order of the left value, what only the right has comes after; where two objects hold the
same keys in another order, that is a difference of the object. Lists are
compared position by position once their equal beginnings and ends are set aside. Texts that are
themselves JSON objects or lists are compared by their fields, because providers send arguments so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from sessions_app.core.compare.partial import is_truncated, not_comparable_note
from sessions_app.core.compare.paths import Place, path_text
from sessions_app.core.compare.strict import Interner, is_number, read_json_text, same_leaf
from sessions_app.core.compare.volatile import NOTHING_VOLATILE, SAME_KEYS, VolatileRules, rule_for
from sessions_app.core.payload import JsonValue

DifferenceStatus = Literal["changed", "only_left", "only_right", "not_comparable"]

SAME_NUMBER = "same number, other text"
SAME_VALUE = "same value, other text"


class Missing:
    """The side of a difference that has nothing there; `null` is a value and not this."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()


class KeyOrder(tuple[str, ...]):
    """The keys of an object, as a value that can differ."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One field that is not the same on both sides; `MISSING` stands for no field at all."""

    path: str
    left: JsonValue
    right: JsonValue
    status: DifferenceStatus
    note: str | None = None

    @property
    def uncaptured_on(self) -> str | None:
        """The side that did not capture the field, where that is all that is known."""
        begin = "not captured on the "
        said = self.note or ""
        return said.removeprefix(begin) if self.status == "not_comparable" and said.startswith(begin) else None


@dataclass(kw_only=True, slots=True)
class Tally:
    """What a comparison looked at and what it left out."""

    compared: int = 0
    """Fields held against each other: scalars and empty containers; a part that one side lacks
    counts as one, what is not comparable not at all."""
    ignored: Counter[str] = field(default_factory=Counter)
    """Differences hidden, by the key of the rule."""


def first_difference(
    left: JsonValue, right: JsonValue, *, ignore: VolatileRules = NOTHING_VOLATILE, path: str = ""
) -> Difference | None:
    """Stops at the first one."""
    return next(differences(left, right, ignore=ignore, path=path), None)


def differences(
    left: JsonValue,
    right: JsonValue,
    *,
    ignore: VolatileRules = NOTHING_VOLATILE,
    path: str = "",
    tally: Tally | None = None,
) -> Iterator[Difference]:
    """Lazily, in reading order. `path` is where the values stand; rules look at the whole path."""
    return _Walk(ignore, tally or Tally()).differences(left, right, path)


Pair = tuple[Place | str, JsonValue, JsonValue]


class _Walk:
    """Goes through two values with a stack of its own, so that depth is no matter."""

    def __init__(self, ignore: VolatileRules, tally: Tally) -> None:
        self._ignore = ignore
        self._tally = tally
        self._interner = Interner()

    def differences(self, left: JsonValue, right: JsonValue, path: Place | str) -> Iterator[Difference]:
        stack: list[Iterator[Pair]] = [iter([(path, left, right)])]
        while stack:
            for place, one, other in stack[-1]:
                if _is_walkable(one, other):
                    stack.append(self._children(place, one, other))
                    break
                yield from self._leaf(place, one, other)
            else:
                stack.pop()

    def _children(self, place: Place | str, left: JsonValue, right: JsonValue) -> Iterator[Pair]:
        if isinstance(left, dict):
            return self._members(place, left, right)
        if len(left) == len(right):
            return self._items(place, left, right, 0, len(left), len(right))
        return self._trimmed_items(place, left, right)

    def _members(self, place: Place | str, left: dict[str, JsonValue], right: dict[str, JsonValue]) -> Iterator[Pair]:
        for key, value in left.items():
            other = right.get(key, MISSING)
            if type(value) in _PLAIN and type(value) is type(other) and value == other:
                self._tally.compared += 1
            else:
                yield Place(place, key), value, other
        for key, other in right.items():
            if key not in left:
                yield Place(place, key), MISSING, other
        if len(left) == len(right) and list(left) != list(right) and left.keys() == right.keys():
            yield place, KeyOrder(left), KeyOrder(right)

    def _trimmed_items(self, place: Place | str, left: list[JsonValue], right: list[JsonValue]) -> Iterator[Pair]:
        start, tail = common_ends(left, right, self._interner)
        equal = left[:start] + left[len(left) - tail :]
        self._tally.compared += sum(map(self._interner.leaves, equal))
        return self._items(place, left, right, start, len(left) - tail, len(right) - tail)

    def _items(
        self,
        place: Place | str,
        left: list[JsonValue],
        right: list[JsonValue],
        start: int,
        left_end: int,
        right_end: int,
    ) -> Iterator[Pair]:
        for index in range(start, max(left_end, right_end)):
            one = left[index] if index < left_end else MISSING
            other = right[index] if index < right_end else MISSING
            yield Place(place, index), one, other

    def _leaf(self, place: Place | str, left: JsonValue, right: JsonValue) -> Iterator[Difference]:
        if _same(left, right):
            self._tally.compared += 1
            return
        if isinstance(left, str) and isinstance(right, str) and (inner := _read_both(left, right)):
            yield from self._inner_fields(place, left, right, inner)
            return
        yield from self._unless_ignored(_difference(path_text(place), left, right))

    def _inner_fields(
        self, place: Place | str, left: str, right: str, inner: tuple[JsonValue, JsonValue]
    ) -> Iterator[Difference]:
        before = sum(self._tally.ignored.values())
        differs = False
        for found in self.differences(*inner, place):
            differs = True
            yield found
        if not differs and sum(self._tally.ignored.values()) == before:
            found = Difference(path=path_text(place), left=left, right=right, status="changed", note=SAME_VALUE)
            yield from self._unless_ignored(found)

    def _unless_ignored(self, found: Difference) -> Iterator[Difference]:
        rule = rule_for(self._ignore, found.path, found.left, found.right, found.note)
        if rule is not None:
            self._tally.ignored[rule.key] += 1
            return
        self._tally.compared += found.status != "not_comparable"
        yield found


_PLAIN = (str, int, bool, type(None))


def _is_walkable(left: JsonValue, right: JsonValue) -> bool:
    """Both are objects or both are lists, not both empty, and whole."""
    if isinstance(left, dict) and isinstance(right, dict):
        return bool(left or right) and not is_truncated(left) and not is_truncated(right)
    return isinstance(left, list) and isinstance(right, list) and bool(left or right)


def _same(left: JsonValue, right: JsonValue) -> bool:
    if is_truncated(left) and is_truncated(right):
        return not_comparable_note(left, right) is None
    return same_leaf(left, right)


def _read_both(left: str, right: str) -> tuple[JsonValue, JsonValue] | None:
    one = read_json_text(left)
    other = None if one is None else read_json_text(right)
    return None if other is None or type(one) is not type(other) else (one, other)


def _difference(path: str, left: JsonValue, right: JsonValue) -> Difference:
    status, note = _status(left, right)
    one, other = (list(value) if isinstance(value, KeyOrder) else value for value in (left, right))
    return Difference(path=path, left=one, right=other, status=status, note=note)


def _status(left: JsonValue, right: JsonValue) -> tuple[DifferenceStatus, str | None]:
    if left is MISSING:
        return "only_right", None
    if right is MISSING:
        return "only_left", None
    note = not_comparable_note(left, right)
    if note is not None:
        return "not_comparable", note
    if isinstance(left, KeyOrder):
        return "changed", SAME_KEYS
    same_number = is_number(left) and is_number(right) and left == right
    return "changed", SAME_NUMBER if same_number else None


def common_ends(left: list[JsonValue], right: list[JsonValue], interner: Interner) -> tuple[int, int]:
    """How many items agree at the beginning and, of the rest, at the end."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and interner.same(left[start], right[start]):
        start += 1
    tail = 0
    while tail < shorter - start and interner.same(left[-1 - tail], right[-1 - tail]):
        tail += 1
    return start, tail
