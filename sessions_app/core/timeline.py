"""Where the time of a run went: when its steps ran, which of them it waited for, and when none ran."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from sessions_app.core.step_summary import StepSummary


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTime:
    """When a step ran, in milliseconds since the start of the run."""

    index: int
    kind: str
    start: float
    end: float
    """The start again where its duration is not known."""
    inside: int | None = None
    """The step that it ran inside of. The calls that a model asked for run after it, and are inside what it is in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """A part of the critical path: while it lasted, the run waited for this step."""

    start: float
    end: float
    step: StepTime | None
    """None while no step ran."""

    @property
    def length(self) -> float:
        return self.end - self.start


def step_times(steps: Sequence[StepSummary], started_at: datetime | None) -> list[StepTime]:
    """Of the steps whose start was recorded."""
    starts = [step.started_at for step in steps if step.started_at is not None]
    origin = started_at or min(starts, default=None)
    around = steps_around(steps)
    return [
        _time(step, (step.started_at - origin).total_seconds() * 1000, around[step.index])
        for step in steps
        if step.started_at is not None and origin is not None
    ]


def _time(step: StepSummary, start: float, inside: int | None) -> StepTime:
    end = start + max(step.duration_ms or 0, 0)
    return StepTime(index=step.index, kind=step.kind, start=start, end=end, inside=inside)


def steps_around(steps: Sequence[StepSummary]) -> dict[int, int | None]:
    """Of each step the one that it ran inside of. A parent stands before its children, or it is none."""
    kinds = {step.index: step.kind for step in steps}
    around: dict[int, int | None] = {}
    for step in steps:
        parent = step.parent if step.parent in around else None
        asked_for = parent is not None and kinds[parent] == "model"
        around[step.index] = around[parent] if asked_for and parent is not None else parent
    return around


def critical_path(times: Sequence[StepTime]) -> list[Stretch]:
    """The stretches from the first start to the last end, in order: shortening any other step would gain nothing."""
    if not times:
        return []
    first, last = min(time.start for time in times), max(time.end for time in times)
    return [*_backwards(times, first, last)][::-1]


def _backwards(times: Sequence[StepTime], first: float, at: float) -> Iterator[Stretch]:
    """From the end of the run: what ended last was waited for, down to the innermost step."""
    within = _by_container(times)
    containers: list[StepTime | None] = [None]
    while containers:
        container = containers[-1]
        last = within[container.index if container else None].last_before(at)
        begin = first if container is None else container.start
        until = begin if last is None else last.end
        if until < at:
            yield Stretch(start=until, end=at, step=container)
            at = until
        if last is None:
            containers.pop()
        else:
            containers.append(last)


def _by_container(times: Iterable[StepTime]) -> Mapping[int | None, _Contained]:
    known = {time.index for time in times}
    within: defaultdict[int | None, _Contained] = defaultdict(_Contained)
    for time in sorted(times, key=attrgetter("end", "start", "index")):
        within[time.inside if time.inside in known else None].waiting.append(time)
    return within


@dataclass(kw_only=True, slots=True)
class _Contained:
    """The steps inside of one, each given out once."""

    waiting: list[StepTime] = field(default_factory=list)
    """By their ends."""
    ran_on: list[StepTime] = field(default_factory=list)
    """By their starts: those that had not ended at the time that was asked for last."""

    def last_before(self, at: float) -> StepTime | None:
        """What ended last. Of several that still ran, the one that began last: clocks overlap by a little."""
        while self.waiting and self.waiting[-1].end >= at:
            insort(self.ran_on, self.waiting.pop(), key=attrgetter("start", "index"))
        while self.ran_on and self.ran_on[-1].start >= at:
            self.ran_on.pop()
        if self.ran_on:
            return self.ran_on.pop()
        return self.waiting.pop() if self.waiting else None
