"""The list of steps as a person reads it: nested under their parents, with repeats folded.

Works on rows alone: equal keys are equal calls, so nothing has to be loaded to fold a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from sessions_app.core.clipping import clipped
from sessions_app.core.search.snippets import Pieces, pieces_of
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Run
from sessions_app.templatetags.recorded import duration
from sessions_app.web.badges import SOURCE_MEANS, State, state_of

REPEATS = 3
"""Fewer are not worth folding."""
ALIKE = 6
"""Calls of one tool whose arguments differ say more each: fewer than these are listed."""
LONGEST_CYCLE = 6
DEEPEST = 6
ICONS = {"model": "brain", "tool": "wrench", "retrieval": "search", "agent": "bot"}
OTHER_ICON = "circle-dot"
ARGUMENTS, ANSWER = 90, 140
"""Characters of a call and of its answer that a row shows."""
IN_SIGHT, IN_SIGHT_OF_BOTH = 24, 48
"""Characters that fit the narrowest column, and the two of them that a model's answer takes."""

Brace = Literal["", "first", "middle", "last"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A step and its place in the list."""

    step: StepSummary
    depth: int
    brace: Brace = ""
    """Calls that one answer of the model asked for together."""
    offset_ms: float | None = None
    """Since the start of the run."""
    hits: int = 0
    """How often what is looked for stands in it."""
    snippet: Pieces = ()
    """Where that is first, unless the row shows it anyway."""
    called: tuple[Run, ...] = ()
    """Runs of sub-agents that it called."""

    @property
    def css(self) -> str:
        row = self.step
        names = [f"k-{row.kind}"]
        names += ["failed"] if row.has_failed else []
        names += ["is-hit"] if self.hits else []
        names += ["brace", f"brace-{self.brace}"] if self.brace else []
        return " ".join([*names, f"depth-{self.depth}"] if self.depth else names)

    @property
    def icon(self) -> str:
        return ICONS.get(self.step.kind, OTHER_ICON)

    @property
    def source(self) -> State | None:
        """Where the answer came from, unless from the recording."""
        return None if self.step.source == "recorded" else state_of("source", self.step.source)

    @property
    def source_means(self) -> str:
        return SOURCE_MEANS.get(self.step.source, "")

    @property
    def arguments(self) -> str | None:
        return _shown(self.step.arguments_preview, ARGUMENTS)

    @property
    def has_arguments_words(self) -> bool:
        """Whether arguments, or the lack of them, are worth a word: a model call has messages instead."""
        return self.arguments is not None or self.step.kind not in ("other", "model")

    @property
    def answer(self) -> str | None:
        """The error when there is one, else the result; None when it was not captured."""
        row = self.step
        return _shown((row.error_preview if row.has_error else None) or row.result_preview, ANSWER)

    @property
    def has_answer(self) -> bool:
        """Whether an answer, or the lack of one, is worth a word; one that nobody knows has its mark."""
        is_awaited = self.step.kind == "other" or self.step.has_error or self.step.source == "unknown"
        return self.answer is not None or not is_awaited

    @property
    def outcome(self) -> str | None:
        return None if self.step.outcome == "success" else self.step.outcome

    @property
    def took(self) -> str:
        return "" if self.step.duration_ms is None else str(duration(self.step.duration_ms))

    @property
    def tokens(self) -> str:
        row = self.step
        if row.kind != "model":
            return ""
        known = ("–" if count is None else f"{count:,}" for count in (row.input_tokens, row.output_tokens))
        return " / ".join(known)

    @property
    def offset(self) -> str:
        return offset_words(self.offset_ms)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fold:
    """A loop: the same calls over and over."""

    lines: tuple[Line, ...]
    times: int
    calls: tuple[Line, ...]
    """The calls of one turn of the loop, without model steps."""
    opened: Line | None = None
    """The step inside that the page is asked to show."""
    unfolded: frozenset[int] = frozenset()
    """First steps of the loops that the page shows whole."""

    @property
    def is_unfolded(self) -> bool:
        return self.first in self.unfolded

    @property
    def unfold_target(self) -> str:
        """For addresses: the open loops once this one is opened, or folded again."""
        return ",".join(map(str, sorted(self.unfolded ^ {self.first})))

    @property
    def first(self) -> int:
        return self.lines[0].step.index

    @property
    def last(self) -> int:
        return self.lines[-1].step.index

    @property
    def depth(self) -> int:
        return min(line.depth for line in self.lines)

    @property
    def name(self) -> str:
        return " + ".join(line.step.name for line in self.calls)

    @property
    def has_failed(self) -> bool:
        return any(line.step.has_failed for line in self.lines)

    @property
    def sources(self) -> list[State]:
        """Where the answers of one turn came from, unless from the recording."""
        found = {line.step.source: line.source for line in self.lines}
        return [source for source in found.values() if source is not None]

    @property
    def hits(self) -> int:
        return sum(line.hits for line in self.lines)

    @property
    def duration_ms(self) -> float | None:
        known = [line.step.duration_ms for line in self.lines if line.step.duration_ms is not None]
        return sum(known) if known else None

    @property
    def last_calls(self) -> tuple[Line, ...]:
        """The calls of its last turn."""
        return tuple(line for line in self.lines[-self._turn :] if line.step.kind != "model")

    @property
    def has_same_arguments(self) -> bool:
        return all(line.step.arguments_key == self._first_of(i).arguments_key for i, line in enumerate(self.lines))

    @property
    def has_same_results(self) -> bool:
        of_calls = (i for i, line in enumerate(self.lines) if line.step.kind != "model")
        return all(self.lines[i].step.result_key == self._first_of(i).result_key for i in of_calls)

    @property
    def _turn(self) -> int:
        return len(self.lines) // self.times

    def _first_of(self, i: int) -> StepSummary:
        """The step of the first turn in the place of this one."""
        return self.lines[i % self._turn].step

    @property
    def is_answer_captured(self) -> bool:
        return all(line.step.result_key is not None for line in self.calls)

    @property
    def is_answer_empty(self) -> bool:
        return all(line.step.is_answer_empty for line in self.calls)

    @property
    def around(self) -> int:
        """Steps between the calls: the model asking again."""
        return self._turn - len(self.calls)


Entry = Line | Fold


def offset_words(offset_ms: float | None) -> str:
    """Narrow and exact, so that a column of them can be read downwards."""
    if offset_ms is None:
        return ""
    seconds = offset_ms / 1000
    if abs(seconds) < 60:
        return f"{seconds:+.2f} s"
    minutes, rest = divmod(abs(seconds), 60)
    sign = "-" if seconds < 0 else "+"
    if minutes < 60:
        return f"{sign}{minutes:.0f}:{rest:05.2f}"
    return f"{sign}{minutes // 60:.0f}:{minutes % 60:02.0f}:{rest:02.0f}"


def _shown(text: str | None, length: int) -> str | None:
    """None stays None: it was not captured."""
    return None if text is None else clipped(text, length)


def outline(
    rows: Sequence[StepSummary],
    *,
    started_at: datetime | None = None,
    asked: int | None = None,
    unfolded: Collection[int] = (),
    hits: Mapping[int, int] | None = None,
    snippets: Mapping[int, Pieces] | None = None,
    hidden: Mapping[int, int | None] | None = None,
    called: Mapping[int | None, Sequence[Run]] | None = None,
    apart: Collection[int] = (),
    by_name: bool = False,
) -> list[Entry]:
    """`asked` is the step that is shown beside the list; `unfolded` holds first steps of open loops; `hidden` has the
    steps that are left out, each with its parent; `called` has the runs that steps called. Equal calls fold, and then
    calls of one tool whatever its arguments were, but for those that stand `apart`; a list of times has nothing to say
    of arguments, so that it folds the latter alone, which is `by_name`."""
    lines = _lines(rows, started_at, hidden or {}, called or {})
    lines = [_with_hits(line, hits or {}, snippets or {}) for line in lines]
    loops = _Loops(asked=asked, unfolded=frozenset(unfolded))
    entries: Sequence[Entry] = lines if by_name else loops.folded(lines, _signature, REPEATS)
    return loops.folded(entries, lambda line: _named(line, apart), REPEATS if by_name else ALIKE)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Loops:
    """What the page asks for of the loops that are found."""

    asked: int | None
    unfolded: frozenset[int]

    def folded(self, entries: Sequence[Entry], mark: Callable[[Line], Hashable], least: int) -> list[Entry]:
        """Lines whose marks go round at least so often become one fold; a fold is like no other."""
        marks = [entry.first if isinstance(entry, Fold) else mark(entry) for entry in entries]
        found: list[Entry] = []
        at = 0
        while at < len(entries):
            cycle, times = _cycle_at(marks, at)
            end = at + (cycle * times if times >= least else 1)
            lines = [entry for entry in entries[at:end] if isinstance(entry, Line)]
            found.append(entries[at] if end == at + 1 else _fold(lines, cycle, times, self.asked, self.unfolded))
            at = end
        return found


def _fold(lines: list[Line], cycle: int, times: int, asked: int | None, unfolded: frozenset[int]) -> Fold:
    return Fold(
        lines=tuple(lines),
        times=times,
        calls=tuple(line for line in lines[:cycle] if line.step.kind != "model"),
        opened=next((line for line in lines if line.step.index == asked), None),
        unfolded=unfolded,
    )


def _lines(
    rows: Sequence[StepSummary],
    started_at: datetime | None,
    hidden: Mapping[int, int | None],
    called: Mapping[int | None, Sequence[Run]],
) -> list[Line]:
    depths: dict[int, int] = {}
    lines = []
    for i, row in enumerate(rows):
        parent = _shown_parent(row, hidden)
        depths[row.index] = 0 if parent is None else min(depths.get(parent, 0) + 1, DEEPEST)
        lines.append(
            Line(
                step=row,
                depth=depths[row.index],
                brace=_brace(rows, i),
                offset_ms=offset_ms(row, started_at),
                called=tuple(called.get(row.index, ())),
            )
        )
    return lines


def _with_hits(line: Line, hits: Mapping[int, int], snippets: Mapping[int, Pieces]) -> Line:
    at = line.step.index
    if not hits.get(at):
        return line
    pieces = snippets.get(at, ())
    return replace(line, hits=hits[at], snippet=_out_of_sight(line, pieces))


def _out_of_sight(line: Line, pieces: Pieces) -> Pieces:
    """Nothing where the row shows the words; from what it shows the beginning of, if they are there."""
    words = next((text for text, is_word in pieces if is_word), "")
    texts = {line.step.title: IN_SIGHT, line.arguments: IN_SIGHT}
    texts |= {line.answer: IN_SIGHT if line.has_arguments_words else IN_SIGHT_OF_BOTH}
    found = {text: text.casefold().find(words.casefold()) for text in texts if text}
    if any(0 <= place <= texts[text] - len(words) for text, place in found.items()):
        return ()
    return next((pieces_of(text, words) for text, place in found.items() if place >= 0), pieces)


def _shown_parent(row: StepSummary, hidden: Mapping[int, int | None]) -> int | None:
    """The nearest step around it that is in the list. A parent stands before its children, or it is none."""
    at, parent = row.index, row.parent
    while parent is not None and parent in hidden and parent < at:
        at, parent = parent, hidden[parent]
    return parent


def offset_ms(row: StepSummary, started_at: datetime | None) -> float | None:
    if row.started_at is None or started_at is None:
        return None
    return (row.started_at - started_at).total_seconds() * 1000


def _brace(rows: Sequence[StepSummary], i: int) -> Brace:
    before = i > 0 and _are_together(rows[i - 1], rows[i])
    after = i + 1 < len(rows) and _are_together(rows[i], rows[i + 1])
    if before:
        return "middle" if after else "last"
    return "first" if after else ""


def _are_together(one: StepSummary, other: StepSummary) -> bool:
    """Both were asked for by the same answer of a model."""
    calls = one.kind == other.kind == "tool"
    return calls and one.parent is not None and one.parent == other.parent


def _signature(line: Line) -> Hashable:
    """Equal for steps that a loop repeats. A call with unknown arguments, or of another run, equals no other."""
    row = line.step
    if line.called:
        return row.index
    if row.kind == "model":
        return (row.kind, row.has_failed, row.error_preview, line.depth, row.source)
    if row.arguments_key is None:
        return row.index
    call = (row.kind, row.name, row.arguments_key, row.result_key)
    return (*call, row.has_failed, row.error_preview, line.depth, row.source)


def _named(line: Line, apart: Collection[int]) -> Hashable:
    """Equal for steps of the same kind and name; one that failed, or that somebody looks for, equals no other."""
    row = line.step
    if line.called or line.hits or row.has_failed or row.index in apart:
        return row.index
    told = (row.source, row.outcome, row.state_changes, row.kind != "model" and row.is_answer_empty)
    return (row.kind, row.kind != "model" and row.name, line.depth, *told)


def _cycle_at(marks: list[Hashable], at: int) -> tuple[int, int]:
    """The shortest cycle that begins here and covers most, and how often it repeats."""
    best, covered = (1, 1), 0
    for cycle in range(1, LONGEST_CYCLE + 1):
        times = _repeats(marks, at, cycle)
        turn = marks[at : at + cycle]
        if times >= REPEATS and cycle * times > covered and any(_is_call(mark) for mark in turn):
            best, covered = (cycle, times), cycle * times
    return best


def _is_call(mark: Hashable) -> bool:
    return isinstance(mark, tuple) and mark[0] != "model"


def _repeats(marks: list[Hashable], at: int, cycle: int) -> int:
    end = at + cycle
    while end < len(marks) and marks[end] == marks[end - cycle]:
        end += 1
    return (end - at) // cycle
