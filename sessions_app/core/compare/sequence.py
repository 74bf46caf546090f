"""What two sequences have in common, in order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq

MAX_CELLS = 100_000_000
"""Left length times right length up to which the longest common subsequence is found exactly: a bit
each, so 12 MB and some 10 ms."""

Match = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matches:
    """Positions that agree, rising on both sides."""

    pairs: list[Match]
    approximate: bool = False
    """Too long for the exact answer: there may be more in common than these."""


def common_subsequence(left: Sequence[Hashable], right: Sequence[Hashable]) -> Matches:
    """Longest where the size allows it; equal beginnings and ends are always kept together."""
    start, tail = equal_ends(left, right)
    inner_left, inner_right = left[start : len(left) - tail], right[start : len(right) - tail]
    inner = _inner(*_as_numbers(inner_left, inner_right))
    shift = len(right) - len(left)
    head = [(i, i) for i in range(start)]
    middle = [(i + start, j + start) for i, j in inner.pairs]
    end = [(i, i + shift) for i in range(len(left) - tail, len(left))]
    return Matches(pairs=head + middle + end, approximate=inner.approximate)


def equal_ends(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[int, int]:
    """How many items agree at the beginning and, of the rest, at the end."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    tail = 0
    while tail < shorter - start and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    return start, tail


def _as_numbers(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Small numbers for the items, so that equality is exact and cheap."""
    numbers: dict[Hashable, int] = {}
    one = [numbers.setdefault(item, len(numbers)) for item in left]
    other = [numbers.setdefault(item, len(numbers)) for item in right]
    return one, other


def _inner(left: list[int], right: list[int]) -> Matches:
    if not left or not right:
        return Matches(pairs=[])
    if len(left) * len(right) > MAX_CELLS:
        return Matches(pairs=_by_occurrence(left, right), approximate=True)
    blocks = LCSseq.opcodes(left, right)
    return Matches(
        pairs=[
            (block.src_start + k, block.dest_start + k)
            for block in blocks
            if block.tag == "equal"
            for k in range(block.src_end - block.src_start)
        ]
    )


def _by_occurrence(left: list[int], right: list[int]) -> list[Match]:
    """The n-th occurrence of an item pairs with the n-th on the other side; then the longest rise."""
    positions = {item: j for j, item in enumerate(_numbered(right))}
    pairs = [(i, positions[item]) for i, item in enumerate(_numbered(left)) if item in positions]
    return _longest_rise(pairs)


def _numbered(items: list[int]) -> list[tuple[int, int]]:
    seen: Counter[int] = Counter()
    numbered = []
    for item in items:
        numbered.append((item, seen[item]))
        seen[item] += 1
    return numbered


def _longest_rise(pairs: list[Match]) -> list[Match]:
    """The longest run of pairs that rises on the right too (patience sorting)."""
    tops: list[int] = []
    top_pairs: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(top_pairs[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        top_pairs[pile : pile + 1] = [at]
    return _follow_back(pairs, before, top_pairs[-1] if top_pairs else -1)


def _follow_back(pairs: list[Match], before: list[int], at: int) -> list[Match]:
    rise = []
    while at >= 0:
        rise.append(pairs[at])
        at = before[at]
    return rise[::-1]
