"""The bars of the rows: when a step ran, how long it waited for the first token, what it waited for before."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sessions_app.core.step_summary import StepSummary
from sessions_app.core.timeline import Stretch
from sessions_app.web.sessions.outline import Entry, Fold, Line
from sessions_app.web.timeline.axis import Axis

HEIGHT = 16
FULL, THIN = (3, 10), (6, 5)
"""Top and height of bars on the critical path and beside it."""
SHORTEST_GAP_MS = 1
SHORTEST_GAP = 0.01
"""Of the time that the axis shows; shorter ones are only to be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """What one row draws: SVG paths, one for each kind of step in it."""

    paths: tuple[tuple[str, str], ...]
    first_token: str
    """Over the time until the first token."""
    failed: str
    """At its end, when it failed."""
    outline: str
    """Of the bars of steps that failed."""
    gap: str
    gap_ms: float | None
    """How long nothing ran before it."""
    playhead: int
    """Where it begins in the overview of the whole run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """An entry of the list of steps, with its bar; None where no time was recorded."""

    entry: Entry
    bar: Bar | None
    opened: tuple[Row, ...] = ()
    """The rows of a loop that is unfolded, or that one which is shown."""

    @property
    def is_fold(self) -> bool:
        return isinstance(self.entry, Fold)


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    axis: Axis
    whole: Axis
    """Of the overview."""
    critical: Collection[int]
    gaps: Mapping[int, Stretch]
    """Before the step with this index, when no step ran."""

    def rows(self, entries: Sequence[Entry]) -> list[Row]:
        return [self.row(entry) for entry in entries]

    def row(self, entry: Entry) -> Row:
        if isinstance(entry, Line):
            return Row(entry=entry, bar=self._bar((entry,)))
        shown = entry.lines if entry.is_unfolded else (entry.opened,) if entry.opened else ()
        return Row(entry=entry, bar=self._bar(entry.lines), opened=tuple(self.row(line) for line in shown))

    def _bar(self, lines: Sequence[Line]) -> Bar | None:
        steps = [line.step for line in lines if line.step.index in self.axis.reaches]
        if not steps:
            return None
        gap = self.gaps.get(steps[0].index) if self.axis.is_time else None
        return Bar(
            paths=self._paths(steps),
            first_token="".join(map(self._first_token, steps)),
            failed="".join(f"M{sum(self._place(step))} 0v{HEIGHT}" for step in steps if step.has_failed),
            outline="".join(self._outline(step) for step in steps if step.has_failed),
            gap=self._gap(gap),
            gap_ms=gap.length if gap else None,
            playhead=self.whole.bar(self.whole.reaches[steps[0].index])[0],
        )

    def _paths(self, steps: Sequence[StepSummary]) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        for step in steps:
            found[step.kind] = found.get(step.kind, "") + self._outline(step)
        return tuple(found.items())

    def _outline(self, step: StepSummary) -> str:
        return rectangle(*self._place(step), *(FULL if step.index in self.critical else THIN))

    def _place(self, step: StepSummary) -> tuple[int, int]:
        return self.axis.bar(self.axis.reaches[step.index])

    def _first_token(self, step: StepSummary) -> str:
        """Nothing for one that says of itself that it came after the end."""
        start, end = self.axis.reaches[step.index]
        if not self.axis.is_time or step.first_token_ms is None or not 0 < step.first_token_ms <= end - start:
            return ""
        x, _ = self._place(step)
        width = self.axis.x(start + step.first_token_ms) - x
        return rectangle(x, width, *FULL) if width > 1 else ""

    def _gap(self, gap: Stretch | None) -> str:
        if gap is None or gap.length < SHORTEST_GAP * (self.axis.high - self.axis.low):
            return ""
        return f"M{self.axis.x(gap.start)} {HEIGHT // 2}H{self.axis.x(gap.end)}"


def rectangle(x: int, width: int, top: int, height: int) -> str:
    return f"M{x} {top}h{width}v{height}h-{width}z"


def gaps_before(path: Sequence[Stretch]) -> dict[int, Stretch]:
    """By the step that ended the gap."""
    found = {after.step.index: gap for gap, after in pairwise(path) if gap.step is None and after.step is not None}
    return {index: gap for index, gap in found.items() if gap.length >= SHORTEST_GAP_MS}
