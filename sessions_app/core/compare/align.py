"""Which step of one run stands beside which step of another.

Steps pair by what was asked first (kind, name, arguments), then by the shape of the arguments, then
by kind and name alone. A model step is known by what it decided, never by ids, times or the
history it was given, so that an inserted step shifts nothing after it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from sessions_app.core.compare.sequence import Match, common_subsequence

MODEL = "model"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepKey:
    """What aligning needs to know of a step; cheap to store beside a row."""

    index: int
    kind: str
    name: str
    arguments_digest: str | None = None
    """Of the canonical arguments; of a model step: of the texts and calls it answered."""
    shape_digest: str | None = None
    """Of the arguments' field names and types; of a model step: of the names it called."""
    result_digest: str | None = None
    error: str | None = None
    output_digest: str | None = None
    """Of a model step: the node of its output history."""

    @property
    def asked(self) -> Hashable:
        return self.kind, self._own_name, self.arguments_digest

    @property
    def shaped(self) -> Hashable:
        return self.kind, self._own_name, self.shape_digest

    @property
    def named(self) -> Hashable:
        return self.kind, self._own_name

    @property
    def _own_name(self) -> str:
        """A model step is named after its model, which may be the very thing that changed."""
        return "" if self.kind == MODEL else self.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A pair of positions (from 0), or a position without a partner."""

    left: int | None
    right: int | None
    moved_to: int | None = None
    """For a step without a partner: where the same call stands on the other side, out of order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alignment:
    """All steps of both runs, each exactly once, in order."""

    rows: tuple[Row, ...]
    approximate: bool = False
    """The runs are too long and too different for the best answer; this one is still in order."""


_LEVELS: tuple[Callable[[StepKey], Hashable], ...] = (
    lambda key: key.asked,
    lambda key: key.shaped,
    lambda key: key.named,
)


def align_steps(left: Sequence[StepKey], right: Sequence[StepKey]) -> Alignment:
    gaps: list[Gap] = [(0, len(left), 0, len(right))]
    pairs: list[Match] = []
    approximate = False
    for level in _LEVELS:
        found, is_rough = _match_within(gaps, list(map(level, left)), list(map(level, right)))
        approximate = approximate or is_rough
        pairs = sorted(pairs + found)
        gaps = _gaps_between(pairs, len(left), len(right))
    rows = _rows(pairs, len(left), len(right))
    return Alignment(rows=_with_moves(rows, left, right), approximate=approximate)


Gap = tuple[int, int, int, int]
"""Left start and end, right start and end: steps still without a partner, none crossing a pair."""


def _match_within(gaps: list[Gap], left: list[Hashable], right: list[Hashable]) -> tuple[list[Match], bool]:
    pairs: list[Match] = []
    approximate = False
    for a, b, c, d in gaps:
        found = common_subsequence(left[a:b], right[c:d])
        pairs += [(i + a, j + c) for i, j in found.pairs]
        approximate = approximate or found.approximate
    return pairs, approximate


def _gaps_between(pairs: list[Match], left_count: int, right_count: int) -> list[Gap]:
    """The gaps that have steps on both sides."""
    gaps, a, c = [], 0, 0
    for b, d in [*pairs, (left_count, right_count)]:
        if a < b and c < d:
            gaps.append((a, b, c, d))
        a, c = b + 1, d + 1
    return gaps


def _rows(pairs: list[Match], left_count: int, right_count: int) -> list[Row]:
    """Between two pairs, what only the left has comes first."""
    rows: list[Row] = []
    a = c = 0
    for b, d in pairs:
        rows += _alone(range(a, b), range(c, d))
        rows.append(Row(left=b, right=d))
        a, c = b + 1, d + 1
    return rows + _alone(range(a, left_count), range(c, right_count))


def _alone(left: range, right: range) -> list[Row]:
    return [Row(left=i, right=None) for i in left] + [Row(left=None, right=j) for j in right]


def _with_moves(rows: list[Row], left: Sequence[StepKey], right: Sequence[StepKey]) -> tuple[Row, ...]:
    """Names the partner of steps that stand elsewhere on the other side."""
    lonely = {left[r.left].asked: r.left for r in rows if r.right is None and r.left is not None}
    moves = {
        lonely.pop(right[r.right].asked): r.right
        for r in rows
        if r.left is None and r.right is not None and right[r.right].asked in lonely
    }
    back = {j: i for i, j in moves.items()}
    return tuple(_moved(row, moves, back) for row in rows)


def _moved(row: Row, moves: dict[int, int], back: dict[int, int]) -> Row:
    if row.right is None and row.left is not None:
        return Row(left=row.left, right=None, moved_to=moves.get(row.left))
    if row.left is None and row.right is not None:
        return Row(left=None, right=row.right, moved_to=back.get(row.right))
    return row


def widened(inner: Alignment, head: int, tail: int) -> Alignment:
    """The alignment of whole runs of which `inner` leaves out equal ends."""
    rows = [_shifted(row, head) for row in inner.rows]
    left = head + sum(row.left is not None for row in inner.rows)
    right = head + sum(row.right is not None for row in inner.rows)
    first = [Row(left=i, right=i) for i in range(head)]
    last = [Row(left=left + i, right=right + i) for i in range(tail)]
    return Alignment(rows=(*first, *rows, *last), approximate=inner.approximate)


def _shifted(row: Row, by: int) -> Row:
    left, right, moved_to = (
        None if position is None else position + by for position in (row.left, row.right, row.moved_to)
    )
    return Row(left=left, right=right, moved_to=moved_to)
