"""Three runs side by side: recorded, reproduced, forked. Read-only, a page of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.compare.runs import Comparison, StepPair
from sessions_app.core.compare.three import ThreeValues, Trio, join_differences, join_facts, join_steps
from sessions_app.core.payload import JsonValue
from sessions_app.web.diff.comparison import FIELDS, ROWS, Chosen, Side, side_of
from sessions_app.web.render import spelled
from sessions_app.web.render.changes import LONGEST, Bit, Field, field_of

_STATUS = {
    "changed": "{} differs",
    "only_left": "not in {}",
    "only_right": "only in {}",
    "not_comparable": "{} not comparable",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreeField:
    """A field of which at least one run holds something else than the left one."""

    path_parts: tuple[str, ...]
    columns: tuple[Column, ...]
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """What one run holds, with what differs from the left run marked."""

    letter: str
    bits: tuple[Bit, ...]
    is_missing: bool
    differs: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownTrio:
    """Steps of three runs that stand beside each other."""

    number: int
    sides: tuple[tuple[str, Side | None], ...]
    """Letter and step of each run."""
    words: tuple[str, ...]
    """What of B and C is not as in A."""
    fields: tuple[ThreeField, ...]
    more_fields: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SameSteps:
    """Steps that are the same in all three, in a row."""

    number: int
    count: int
    first: int
    last: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownThree:
    """One page of three runs."""

    rows: tuple[ShownTrio | SameSteps, ...]
    facts: tuple[ThreeField, ...]
    same: int
    different: int
    first_change: int | None
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    trios: tuple[Trio, ...]
    is_same: bool


def shown_three(second: Comparison, third: Comparison, chosen: Chosen) -> ShownThree:
    trios = join_steps(second.steps, third.steps)
    rows = [row for row in _rows(trios) if not (chosen.only_changes and row.is_same)]
    start = _start(rows, chosen)
    facts = [_field(values) for _, found in join_facts(second.facts, third.facts) for values in found]
    changed = [row.number for row in rows if not row.is_same]
    return ShownThree(
        rows=tuple(_drawn(row) for row in rows[start : start + ROWS]),
        facts=tuple(facts[:FIELDS]),
        same=sum(trio.is_same for trio in trios),
        different=len(changed),
        first_change=changed[0] if changed else None,
        before=max(0, start - ROWS) if start else None,
        after=start + ROWS if start + ROWS < len(rows) else None,
    )


def _rows(trios: list[Trio]) -> list[_Row]:
    rows: list[_Row] = []
    at = 0
    for is_same, group in groupby(trios, key=lambda trio: trio.is_same):
        found = tuple(group)
        rows += [_Row(at, found, True)] if is_same else [_Row(at + i, (trio,), False) for i, trio in enumerate(found)]
        at += len(found)
    return rows


def _start(rows: list[_Row], chosen: Chosen) -> int:
    holding = (i for i, row in enumerate(rows) if chosen.step in _left_steps(row))
    found = next(holding, None) if chosen.step is not None else None
    at = min(chosen.at, max(len(rows) - 1, 0)) if found is None else found
    return at // ROWS * ROWS


def _left_steps(row: _Row) -> list[int]:
    return [trio.steps[0].index for trio in row.trios if trio.steps[0]]


def _drawn(row: _Row) -> ShownTrio | SameSteps:
    if row.is_same:
        steps = _left_steps(row)
        return SameSteps(number=row.number, count=len(steps), first=steps[0], last=steps[-1])
    return _trio(row.number, row.trios[0])


def _trio(number: int, trio: Trio) -> ShownTrio:
    second, third = (pair.differences if pair else () for pair in (trio.second, trio.third))
    has = [step is not None for step in trio.steps[1:]]
    fields = list(join_differences(second, third))
    return ShownTrio(
        number=number,
        sides=tuple((letter, side_of(step)) for letter, step in zip("ABC", trio.steps, strict=True)),
        words=tuple(_words(trio)),
        fields=tuple(_field(values, has_right=has[0], has_third=has[1]) for values in fields[:FIELDS]),
        more_fields=max(0, len(fields) - FIELDS),
    )


def _words(trio: Trio) -> list[str]:
    pairs: list[tuple[str, StepPair | None]] = [("B", trio.second), ("C", trio.third)]
    return [_STATUS[pair.status].format(letter) for letter, pair in pairs if pair and pair.status != "same"]


def _field(values: ThreeValues, *, has_right: bool = True, has_third: bool = True) -> ThreeField:
    right = values.right if has_right else MISSING
    third = values.third if has_third else MISSING
    beside_right = field_of(values.path, values.left, right) if values.differs[0] else None
    beside_third = field_of(values.path, values.left, third) if values.differs[1] else None
    left = Column(letter="A", bits=_plain(values.left), is_missing=values.left is MISSING, differs=False)
    return ThreeField(
        path_parts=tuple((beside_right or beside_third or field_of(values.path, "", "")).path_parts),
        columns=(left, _column("B", right, beside_right), _column("C", third, beside_third)),
        note=values.note or "",
    )


def _column(letter: str, value: JsonValue, beside: Field | None) -> Column:
    bits = _plain(value) if beside is None else beside.right
    return Column(letter=letter, bits=bits, is_missing=value is MISSING, differs=beside is not None)


def _plain(value: JsonValue) -> tuple[Bit, ...]:
    if value is MISSING:
        return ()
    text = spelled.compact(spelled.of_value(value))
    return (Bit(kind="equal", text=text if len(text) <= LONGEST else f"{text[:LONGEST]}…"),)
