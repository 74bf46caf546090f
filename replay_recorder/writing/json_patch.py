"""What changed between two JSON values, as JSON Patch (RFC 6902).

A list that only grew gives one operation for each new item, so a state that grows costs what was added to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

Operation = dict[str, Any]


def diff(before: Any, after: Any) -> list[Operation]:
    """Operations that lead from one value to the other; `1`, `1.0` and `true` are three values.

    Lists keep their equal beginnings and ends; what stands between is changed position by position.
    """
    return list(_operations("", before, after))


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values would be written alike, but for the order of keys."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    # A zero has a sign, which == does not see.
    return bool(one == other) and (not isinstance(one, float) or str(one) == str(other))


def _operations(pointer: str, before: Any, after: Any) -> Iterator[Operation]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _members(pointer, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _items(pointer, before, after)
    elif not same(before, after):
        yield {"op": "replace", "path": pointer, "value": after}


def _members(pointer: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Operation]:
    for key, value in before.items():
        if key in after:
            yield from _operations(_child(pointer, key), value, after[key])
        else:
            yield {"op": "remove", "path": _child(pointer, key)}
    for key, value in after.items():
        if key not in before:
            yield {"op": "add", "path": _child(pointer, key), "value": value}


def _items(pointer: str, before: list[Any], after: list[Any]) -> Iterator[Operation]:
    start, tail = _common_ends(before, after)
    end, new_end = len(before) - tail, len(after) - tail
    shared = min(end, new_end)
    for i in range(start, shared):
        yield from _operations(_child(pointer, i), before[i], after[i])
    for i in reversed(range(shared, end)):
        yield {"op": "remove", "path": _child(pointer, i)}
    for i in range(shared, new_end):
        yield {"op": "add", "path": _child(pointer, i if tail else "-"), "value": after[i]}


def _common_ends(before: list[Any], after: list[Any]) -> tuple[int, int]:
    """How many items at the beginning, and then at the end, are the same."""
    start = _common_start(before, after)
    return start, _common_start(before[start:][::-1], after[start:][::-1])


def _common_start(before: list[Any], after: list[Any]) -> int:
    return sum(1 for _ in takewhile(lambda pair: same(*pair), zip(before, after, strict=False)))


def _child(pointer: str, segment: str | int) -> str:
    return f"{pointer}/{str(segment).replace('~', '~0').replace('/', '~1')}"
