"""Three runs side by side: recorded, reproduced, forked. Read-only, a page of rows at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from sessions_app.core.compare.consequences import repeated
from sessions_app.core.compare.field_words import field_words, tool_names, tool_names_of
from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.compare.renaming import of_questions
from sessions_app.core.compare.runs import Comparison, StepPair
from sessions_app.core.compare.summary import stop_words, summary
from sessions_app.core.compare.three import ThreeValues, Trio, join_differences, join_facts, join_steps
from sessions_app.core.payload import JsonValue
from sessions_app.web.diff.comparison import FIELDS, ROWS, Chosen, Side, absent_words, side_of
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

    path: str
    words: str
    columns: tuple[Column, ...]
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """What one run holds, with what differs from the left run marked."""

    letter: str
    bits: tuple[Bit, ...]
    missing: str
    """Why it holds nothing; empty where it holds something."""
    differs: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownTrio:
    """Steps of three runs that stand beside each other."""

    number: int
    sides: tuple[tuple[str, Side | None, str], ...]
    """Letter and step of each run; without a step, why it has none."""
    words: tuple[str, ...]
    """What of B and C is not as in A."""
    fields: tuple[ThreeField, ...]
    uncaptured: tuple[tuple[str, tuple[str, ...]], ...]
    """Letter of a run, and what of this step it did not capture."""
    more_fields: int
    follows: tuple[FollowingFields, ...]
    of_question: tuple[ThreeField, ...]
    """Differences that follow from what the runs were asked: folded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowingFields:
    """Differences of a step that were there at an earlier one: folded."""

    row: int
    """Number of the row where they stand first."""
    step: str
    """Letter and number of that step."""
    fields: tuple[ThreeField, ...]
    count: int


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
    told = _Told(trios, second, third)
    rows = [row for row in _rows(trios) if not (chosen.only_changes and row.is_same)]
    start = _start(rows, chosen)
    tools = tool_names_of(second.left)
    stopped = "".join(letter for letter, run in zip("ABC", told.runs, strict=True) if stop_words(run))
    joined = [values for _, found in join_facts(second.facts, third.facts) for values in found]
    facts = [_field(values, tools, stopped) for values in joined]
    changed = [row.number for row in rows if not row.is_same]
    return ShownThree(
        rows=tuple(_drawn(row, told) for row in rows[start : start + ROWS]),
        facts=tuple(facts[:FIELDS]),
        same=sum(trio.is_same for trio in trios),
        different=len(changed),
        first_change=changed[0] if changed else None,
        before=max(0, start - ROWS) if start else None,
        after=start + ROWS if start + ROWS < len(rows) else None,
    )


def in_words(second: Comparison, third: Comparison) -> str:
    """`B matches A; C diverges from A at step 2`; of two that differ alike, what they do."""
    return alike_words(second, third) or f"B {_beside_a(second)}; C {_beside_a(third)}"


def alike_words(second: Comparison, third: Comparison) -> str | None:
    """`Step 2: search returned none in A, 1 result in B and C`; None where B and C differ from A in other ways."""
    one, other = summary(second), summary(third, "C")
    as_third = re.sub(r"\bB\b", "C", one.lead)
    if second.divergence is None or as_third != other.lead or one.ending != other.ending or one.more or other.more:
        return None
    return one.lead.replace(" in B", " in B and C") if " in B" in one.lead else f"{one.lead}; the same in C"


def _beside_a(comparison: Comparison) -> str:
    places = summary(comparison).places
    if comparison.divergence is None:
        return "matches A"
    return f"diverges from A at step {places[0].step}" if places else "takes the same steps as A"


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


class _Told:
    """What differs at each trio, and which of it was there at an earlier one."""

    def __init__(self, trios: list[Trio], second: Comparison, third: Comparison) -> None:
        self.trios = trios
        self.runs = second.left, second.right, third.right
        self._asked = of_questions(second), of_questions(third)
        self.values = [_values_of(trio) for trio in trios]
        self._causes = repeated([[(v.path, (v.left, v.right, v.third)) for v in row] for row in self.values])

    def split(self, number: int) -> tuple[list[ThreeValues], dict[int | None, list[ThreeValues]]]:
        """What follows from the questions, and the rest by the number of the trio where it stands first."""
        asked, again = self._asked_paths(self.trios[number]), self.again(number)
        of_question = [values for found in again.values() for values in found if values.path in asked]
        rest = {cause: [values for values in found if values.path not in asked] for cause, found in again.items()}
        return of_question, {cause: found for cause, found in rest.items() if found}

    def _asked_paths(self, trio: Trio) -> set[str]:
        """Of fields that in none of the runs differ for another reason."""
        pairs = zip((trio.second, trio.third), self._asked, strict=True)
        judged = [(found.path, asked.explains(found)) for pair, asked in pairs if pair for found in pair.differences]
        return {path for path, is_asked in judged if is_asked} - {path for path, is_asked in judged if not is_asked}

    def absent(self, number: int, place: int) -> str:
        """Why the run at this place has no step there."""
        others = (step for step in self.trios[number].steps if step is not None)
        later = (trio.steps[place] for trio in self.trios[number + 1 :])
        return absent_words("ABC"[place], self.runs[place], others, later)

    def again(self, number: int) -> dict[int | None, list[ThreeValues]]:
        """By the number of the trio where they stand first; None for what is told at this one."""
        found: dict[int | None, list[ThreeValues]] = {}
        for at, values in enumerate(self.values[number]):
            found.setdefault(self._causes.get((number, at)), []).append(values)
        return found


def _values_of(trio: Trio) -> list[ThreeValues]:
    """A run without the step holds nothing in any of its fields."""
    second, third = (pair.differences if pair else () for pair in (trio.second, trio.third))
    _, right, last = trio.steps
    found = join_differences(second, third)
    found = (replace(values, right=MISSING) if right is None else values for values in found)
    return [replace(values, third=MISSING) if last is None else values for values in found]


def _drawn(row: _Row, told: _Told) -> ShownTrio | SameSteps:
    if row.is_same:
        steps = _left_steps(row)
        return SameSteps(number=row.number, count=len(steps), first=steps[0], last=steps[-1])
    return _trio(row.number, told)


def _trio(number: int, told: _Told) -> ShownTrio:
    trio = told.trios[number]
    of_question, again = told.split(number)
    own = again.pop(None, [])
    sides = zip("ABC", trio.steps, strict=True)
    stopped = "".join(letter for letter, step in sides if step and step.source == "unknown")
    shown = [values for values in own if values.is_told]
    tools = tool_names(trio.steps[0])
    return ShownTrio(
        number=number,
        sides=tuple(
            (letter, side_of(step), "" if step else told.absent(number, place))
            for place, (letter, step) in enumerate(zip("ABC", trio.steps, strict=True))
        ),
        of_question=tuple(_field(values, tools, stopped) for values in of_question[:FIELDS]),
        words=tuple(_words(trio)),
        fields=tuple(_field(values, tools, stopped) for values in shown[:FIELDS]),
        uncaptured=tuple(_uncaptured(own, stopped)),
        more_fields=max(0, len(shown) - FIELDS),
        follows=tuple(_follows(cause, told.trios[cause], found) for cause, found in again.items() if cause is not None),
    )


def _uncaptured(own: list[ThreeValues], stopped: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Of a run that stopped at the step nothing could be captured."""
    bare = [values for values in own if not values.is_told]
    for letter in sorted(set("".join(values.uncaptured for values in bare)) - set(stopped)):
        yield letter, tuple(field_words(values.path) for values in bare if letter in values.uncaptured)


def _follows(cause: int, trio: Trio, found: list[ThreeValues]) -> FollowingFields:
    letter, step = next((letter, step) for letter, step in zip("ABC", trio.steps, strict=True) if step is not None)
    fields = tuple(_field(values, tool_names(trio.steps[0]), "") for values in found[:FIELDS])
    return FollowingFields(row=cause, step=f"{letter} {step.index}", fields=fields, count=len(found))


def _words(trio: Trio) -> list[str]:
    pairs: list[tuple[str, StepPair | None]] = [("B", trio.second), ("C", trio.third)]
    return [_STATUS[pair.status].format(letter) for letter, pair in pairs if pair and pair.status != "same"]


def _field(values: ThreeValues, tools: Sequence[str], stopped: str) -> ThreeField:
    """`stopped` are the letters of runs that came to an end there without an answer."""
    right, third = values.right, values.third
    beside_right = field_of(values.path, values.left, right) if values.differs[0] else None
    beside_third = field_of(values.path, values.left, third) if values.differs[1] else None

    def column(letter: str, value: JsonValue, beside: Field | None = None) -> Column:
        lacking = "not captured" if letter in values.uncaptured else "absent"
        missing = "" if value is not MISSING else "none: it stopped" if letter in stopped else lacking
        bits = _plain(value) if beside is None else beside.right
        return Column(letter=letter, bits=bits, missing=missing, differs=beside is not None)

    return ThreeField(
        path=values.path,
        words=field_words(values.path, tools),
        columns=(column("A", values.left), column("B", right, beside_right), column("C", third, beside_third)),
        note=values.note or "",
    )


def _plain(value: JsonValue) -> tuple[Bit, ...]:
    if value is MISSING:
        return ()
    text = spelled.compact(spelled.of_value(value))
    return (Bit(kind="equal", text=text if len(text) <= LONGEST else f"{text[:LONGEST]}…"),)
