"""A comparison as its page shows it: equal steps folded, a page of the rows, fields with marked words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from sessions_app.core.clipping import clipped
from sessions_app.core.compare.consequences import Causes, causes
from sessions_app.core.compare.facts import Fact
from sessions_app.core.compare.field_words import field_words, tool_names, tool_names_of
from sessions_app.core.compare.json_diff import MISSING, Difference
from sessions_app.core.compare.renaming import Renaming, of_questions
from sessions_app.core.compare.runs import Comparison, StepPair
from sessions_app.core.compare.sentences import call_text, value_text
from sessions_app.core.compare.summary import stop_words
from sessions_app.core.run import Run, Step
from sessions_app.web.render.changes import Field, field_of

ROWS = 60
"""Rows with differences on one page."""
FIELDS = 30
"""Differences of one step that are shown."""
ALONE = 4
"""So many steps in a row that only one run has are one row."""
LISTED = 200
"""Of them those that are named."""
CALL = 160
HEIGHT = 1000
LINE = 4
"""Marks of the ruler nearer than this are one mark."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """What the address asks for."""

    step: int | None = None
    """A step of the left run, to be on the page."""
    at: int = 0
    """Number of the first row of the page."""
    only_changes: bool = False
    viewed: Collection[str] = ()
    """Marks of the pairs that were looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A step on one side."""

    index: int
    kind: str
    name: str
    call: str
    has_error: bool
    is_stop: bool
    """Whether the run waits here for an answer that nothing knows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Follows:
    """Differences of a step that were there at an earlier one: folded."""

    pair: int
    """Number of the row where they stand first."""
    step: int
    fields: tuple[Field, ...]
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownPair:
    """Two steps that stand beside each other, or one alone."""

    number: int
    """Among the rows, from 0: its anchor."""
    status: str
    left: Side | None
    right: Side | None
    fields: tuple[Field, ...]
    absent: str = ""
    """Of a step that stands alone: why the other run has none."""
    more_fields: int = 0
    follows: tuple[Follows, ...] = ()
    of_question: tuple[Field, ...] = ()
    """Differences that follow from what the runs were asked: folded."""
    uncaptured: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Letter of a run, and what of this step it did not capture."""
    has_more: bool = False
    moved_to: int | None = None
    mark: str = ""
    """Names the pair in the list of those that were looked at."""
    is_viewed: bool = False
    is_next_viewed: bool = False
    """The first one of the page that was not looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Same:
    """Equal steps in a row."""

    number: int
    count: int
    left_first: int
    left_last: int
    right_first: int
    right_last: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Alone:
    """Steps in a row that only one run has."""

    number: int
    letter: str
    """Of the run that has them."""
    steps: tuple[Side, ...]
    total: int
    is_end: bool
    """Whether this run goes on where the other one has ended."""
    stop: str
    """Of the other run, where it waits for an answer."""
    is_open: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownFact:
    """One fact of both runs."""

    name: str
    words: str
    status: str
    left: str | None
    right: str | None
    fields: tuple[Field, ...]
    told_in: ShownPair | None = None
    """The step below that shows the same difference."""

    @property
    def is_ignored(self) -> bool:
        """Whether the runs differ in it, and a rule leaves that out."""
        return self.status == "same" and self.left != self.right


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownComparison:
    """One page of a comparison."""

    facts: tuple[ShownFact, ...]
    facts_words: str
    """How many of them differ, and how many cannot be compared."""
    same_facts: tuple[ShownFact, ...]
    bare_facts: tuple[str, ...]
    """Names of facts that neither run has."""
    has_ignored_facts: bool
    rows: tuple[ShownPair | Same | Alone, ...]
    counts: dict[str, int]
    inner_changed: int
    """Inner steps of a framework that are not the same, which no count counts."""
    told_again: int
    """Places that follow from the difference that leads."""
    first_change: int | None
    """Anchor of the row where the runs part."""
    before: int | None
    after: int | None
    ruler: Ruler | None
    viewed_count: int
    changed_count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RulerMark:
    """A changed pair, or several that stand too near to be told apart; leads to the first of them."""

    y: int
    height: int
    status: str
    at: int
    """The page of rows that holds it."""
    number: int

    @property
    def on_left(self) -> bool:
        return self.status != "only_right"

    @property
    def on_right(self) -> bool:
        return self.status != "only_left"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruler:
    """Both runs from their first step to their last, in units of a drawing that is `HEIGHT` high."""

    marks: tuple[RulerMark, ...]
    shown_y: int
    shown_height: int
    length: int
    """Pixels, so that a short diff has a short ruler."""


def shown_comparison(
    comparison: Comparison,
    chosen: Chosen,
    mark_of: Callable[[StepPair], str] = lambda pair: "",
    lead: int | None = None,
) -> ShownComparison:
    """`lead` is the number of the row that the page leads with."""
    rows = _rows(comparison.steps)
    reasons = _Reasons(causes(comparison.steps), of_questions(comparison))
    if chosen.only_changes:
        rows = [row for row in rows if not isinstance(row, _SameRows)]
    start = _start(rows, chosen)
    page = rows[start : start + ROWS]
    tools = tool_names_of(comparison.left), tool_names_of(comparison.right)
    facts = [_fact(fact, tools) for fact in comparison.facts if fact.is_captured]
    changed = [row for row in rows if isinstance(row, _OneRow)]
    marks = [mark_of(row.pair) for row in changed]
    differing = [row for row in rows if not isinstance(row, _SameRows)]
    names = dict(zip((row.number for row in changed), marks, strict=True))
    drawn = [_drawn(row, comparison, reasons, chosen.step) for row in page]
    first = next((row.number for row in differing if row.status != "not_comparable"), None)
    return ShownComparison(
        facts=tuple(_told_once(fact, drawn) for fact in facts if fact.status != "same"),
        facts_words=_facts_in_words(comparison.facts),
        same_facts=tuple(fact for fact in facts if fact.status == "same"),
        has_ignored_facts=any(fact.is_ignored for fact in facts),
        bare_facts=tuple(field_words(fact.name) for fact in comparison.facts if not fact.is_captured),
        rows=_with_marks(drawn, names, chosen.viewed),
        counts=_counts(comparison.counted),
        inner_changed=sum(pair.status != "same" for pair in comparison.steps if not pair.is_counted),
        told_again=sum(cause == lead for cause in reasons.caused.values()),
        first_change=first,
        before=max(0, start - ROWS) if start else None,
        after=start + ROWS if start + ROWS < len(rows) else None,
        ruler=_ruler(rows, page, len(comparison.steps)),
        viewed_count=sum(mark in chosen.viewed for mark in marks),
        changed_count=len(marks),
    )


def _told_once(fact: ShownFact, rows: Sequence[ShownPair | Same | Alone]) -> ShownFact:
    """The final answer is what the last step said, most often."""
    sides = [(field.left, field.right) for field in fact.fields]
    pairs = [row for row in rows if isinstance(row, ShownPair)]
    same = (row for row in reversed(pairs) if sides == [(field.left, field.right) for field in row.fields])
    return replace(fact, told_in=next(same, None)) if fact.name == "output" else fact


def _facts_in_words(facts: Sequence[Fact]) -> str:
    """`2 differ, 1 cannot be compared`."""
    unknown = sum(fact.status == "not_comparable" for fact in facts)
    differ = sum(fact.status != "same" for fact in facts) - unknown
    words = [f"{differ} differ{'s' if differ == 1 else ''}"] if differ or not unknown else []
    return ", ".join([*words, *([f"{unknown} cannot be compared"] if unknown else [])])


def _with_marks(
    rows: list[ShownPair | Same | Alone], names: dict[int, str], viewed: Collection[str]
) -> tuple[ShownPair | Same | Alone, ...]:
    drawn: list[ShownPair | Same | Alone] = []
    is_one_next = False
    for row in rows:
        if not isinstance(row, ShownPair):
            drawn.append(row)
            continue
        mark = names[row.number]
        is_next = not is_one_next and mark not in viewed
        is_one_next = is_one_next or is_next
        drawn.append(replace(row, mark=mark, is_viewed=mark in viewed, is_next_viewed=is_next))
    return tuple(drawn)


def _ruler(rows: list[_Row], page: list[_Row], last: int) -> Ruler | None:
    """None where there is nothing to lead to."""
    marks: dict[int, RulerMark] = {}
    height = max(HEIGHT // max(last, 1), LINE)
    for i, row in enumerate(rows):
        if not isinstance(row, _SameRows):
            y = row.number * HEIGHT // last // LINE * LINE
            tall = max(len(row.pairs) * HEIGHT // last, height)
            found = RulerMark(y=y, height=tall, status=row.status, at=i // ROWS * ROWS, number=row.number)
            here = marks.setdefault(y, found)
            if here.status != found.status:
                marks[y] = replace(here, status="changed")
    if not marks:
        return None
    end = page[-1].number + len(page[-1].pairs)
    top, bottom = page[0].number * HEIGHT // last, end * HEIGHT // last
    return Ruler(
        marks=tuple(marks.values()),
        shown_y=top,
        shown_height=max(bottom - top, LINE),
        length=min(max(last * 12, 48), HEIGHT),
    )


@dataclass(frozen=True, slots=True)
class _OneRow:
    number: int
    pair: StepPair

    @property
    def pairs(self) -> tuple[StepPair, ...]:
        return (self.pair,)

    @property
    def status(self) -> str:
        return self.pair.status


@dataclass(frozen=True, slots=True)
class _Rows:
    number: int
    pairs: tuple[StepPair, ...]

    @property
    def status(self) -> str:
        return self.pairs[0].status


class _SameRows(_Rows):
    """Equal steps."""


class _AloneRows(_Rows):
    """Steps of one run that the other one lacks."""


_Row = _OneRow | _SameRows | _AloneRows


def _rows(pairs: tuple[StepPair, ...]) -> list[_Row]:
    rows: list[_Row] = []
    at = 0
    for status, group in groupby(pairs, key=lambda pair: pair.status if pair.moved_to is None else "moved"):
        found = tuple(group)
        if status == "same":
            rows.append(_SameRows(at, found))
        elif status in ("only_left", "only_right") and len(found) >= ALONE:
            rows.append(_AloneRows(at, found))
        else:
            rows += [_OneRow(at + i, pair) for i, pair in enumerate(found)]
        at += len(found)
    return rows


def _start(rows: list[_Row], chosen: Chosen) -> int:
    if chosen.step is not None:
        for i, row in enumerate(rows):
            if _holds(row, chosen.step):
                return i // ROWS * ROWS
    return min(chosen.at, max(len(rows) - 1, 0)) // ROWS * ROWS


def _holds(row: _Row, step: int) -> bool:
    first, last = row.pairs[0].left, row.pairs[-1].left
    return first is not None and last is not None and first.index <= step <= last.index


def _counts(pairs: tuple[StepPair, ...]) -> dict[str, int]:
    counts = dict.fromkeys(("same", "changed", "only_left", "only_right", "not_comparable"), 0)
    for pair in pairs:
        counts[pair.status] += 1
    return counts


@dataclass(frozen=True, slots=True)
class _Reasons:
    """Why fields differ where it is not for what happened at their step."""

    caused: Causes
    asked: Renaming


def _drawn(row: _Row, comparison: Comparison, reasons: _Reasons, step: int | None) -> ShownPair | Same | Alone:
    if isinstance(row, _AloneRows):
        return _alone(row, comparison, step)
    return _same(row) if isinstance(row, _SameRows) else _pair(row, comparison, reasons)


def _absent(pair: StepPair, number: int, comparison: Comparison) -> str:
    """`B stopped at step 4` where that is the reason, `B has ended`, or `no such step in B`."""
    if pair.left is not None and pair.right is not None:
        return ""
    letter, run, side = ("A", comparison.left, "left") if pair.left is None else ("B", comparison.right, "right")
    later = (getattr(each, side) for each in comparison.steps[number + 1 :])
    return absent_words(letter, run, pair.alone, later)


def absent_words(letter: str, run: Run, others: Iterable[Step], later: Iterable[Step | None]) -> str:
    """Why a run has no step beside these, by the steps that come later in it."""
    if any(step.source == "unknown" for step in others):
        return f"{letter} did not ask for this"
    if any(step is not None and step.source != "unknown" for step in later):
        return f"no such step in {letter}"
    return f"{letter} {stop_words(run) or 'has ended'}"


def _alone(row: _AloneRows, comparison: Comparison, step: int | None) -> Alone:
    absent = _absent(row.pairs[-1], row.number + len(row.pairs) - 1, comparison)
    sides = (side_of(pair.left or pair.right) for pair in row.pairs[:LISTED])
    return Alone(
        number=row.number,
        letter="A" if row.status == "only_left" else "B",
        steps=tuple(side for side in sides if side is not None),
        total=len(row.pairs),
        is_end=row.number + len(row.pairs) == len(comparison.steps),
        stop=absent if "stopped" in absent else "",
        is_open=step is not None and _holds(row, step),
    )


def _same(row: _SameRows) -> Same:
    """Equal steps stand on both sides, always."""
    left = [pair.left.index for pair in row.pairs if pair.left]
    right = [pair.right.index for pair in row.pairs if pair.right]
    return Same(
        number=row.number,
        count=len(row.pairs),
        left_first=left[0],
        left_last=left[-1],
        right_first=right[0],
        right_last=right[-1],
    )


def _pair(row: _OneRow, comparison: Comparison, reasons: _Reasons) -> ShownPair:
    pair, pairs = row.pair, comparison.steps
    own: list[Difference] = []
    asked: list[Difference] = []
    again: dict[int, list[Difference]] = {}
    for at, found in enumerate(pair.differences):
        cause = reasons.caused.get((row.number, at))
        if reasons.asked.explains(found):
            asked.append(found)
        elif not _uncaptured_in(found):
            (own if cause is None else again.setdefault(cause, [])).append(found)
    is_told = any(found.path.startswith("response") for found in own)
    return ShownPair(
        number=row.number,
        status=pair.status,
        left=side_of(pair.left, is_told=is_told),
        right=side_of(pair.right, is_told=is_told),
        fields=tuple(_field(found, _tools(pair)) for found in own[:FIELDS]),
        absent=_absent(pair, row.number, comparison),
        of_question=tuple(_field(found, _tools(pair)) for found in asked[:FIELDS]),
        uncaptured=_uncaptured(pair),
        more_fields=max(0, len(own) - FIELDS),
        follows=tuple(_follows(cause, pairs[cause], found, _tools(pair)) for cause, found in again.items()),
        has_more=pair.has_more,
        moved_to=pair.moved_to,
    )


Tools = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of the tools that each side was offered."""


def _tools(pair: StepPair) -> Tools:
    return tool_names(pair.left), tool_names(pair.right)


def _uncaptured_in(found: Difference) -> str:
    """Letter of the run that did not capture the field."""
    return {"left": "A", "right": "B"}.get(found.uncaptured_on or "", "")


def _uncaptured(pair: StepPair) -> tuple[tuple[str, tuple[str, ...]], ...]:
    told = [(letter, field_words(found.path)) for found in pair.differences if (letter := _uncaptured_in(found))]
    by_run = ((letter, tuple(words for of, words in told if of == letter)) for letter in "AB")
    return tuple((letter, words) for letter, words in by_run if words)


def _follows(cause: int, pair: StepPair, found: list[Difference], tools: Tools) -> Follows:
    step = pair.left or pair.right
    fields = tuple(_field(each, tools) for each in found[:FIELDS])
    return Follows(pair=cause, step=step.index if step else 0, fields=fields, count=len(found))


def side_of(step: Step | None, *, is_told: bool = False) -> Side | None:
    """`is_told` is whether what a model answered stands below."""
    if step is None:
        return None
    shown = clipped(step.name if is_told and step.kind == "model" else call_text(step), CALL)
    return Side(
        index=step.index,
        kind=step.kind,
        name=step.name,
        call=shown,
        has_error=step.error is not None,
        is_stop=step.source == "unknown",
    )


def _field(found: Difference, tools: Tools) -> Field:
    names = tools[found.left is MISSING]
    return field_of(found.path, found.left, found.right, note=found.note, status=found.status, tools=names)


def _fact(fact: Fact, tools: Tools) -> ShownFact:
    fields = tuple(_field(found, tools) for found in fact.differences[:FIELDS])
    if fact.status != "same" and not fields:
        fields = (field_of(fact.name, fact.left, fact.right, status=fact.status),)
    return ShownFact(
        name=fact.name,
        words=field_words(fact.name),
        status=fact.status,
        left=None if fact.left is None else value_text(fact.left),
        right=None if fact.right is None else value_text(fact.right),
        fields=fields,
    )
