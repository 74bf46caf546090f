"""Where steps stand in a drawing: by when they ran, or one beside the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sessions_app.core.step_summary import StepSummary
from sessions_app.core.timeline import StepTime, steps_around

WIDTH = 2000
"""Units of a drawing, which the page stretches to the width that there is."""
SMALLEST = 4
"""Of a bar, so that a step of 137 ms is seen in five minutes."""
TICKS = 6
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_LENGTHS = (
    *(part * power for power in (1, 10, 100) for part in (1, 2, 5)),
    *(part * _SECOND for part in (1, 2, 5, 10, 15, 30)),
    *(part * _MINUTE for part in (1, 2, 5, 10, 15, 30)),
    *(part * _HOUR for part in (1, 2, 6, 12)),
)
Reach = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    percent: float
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """A part of a run: all of its steps, or those that a page shows."""

    is_time: bool
    reaches: Mapping[int, Reach]
    """From where to where each step goes; steps whose times are not known have none."""
    low: float
    high: float

    def x(self, at: float) -> int:
        share = (at - self.low) / (self.high - self.low) if self.high > self.low else 0
        return round(min(max(share, 0), 1) * WIDTH)

    def bar(self, reach: Reach) -> tuple[int, int]:
        """Its beginning and its width, which is never nothing."""
        start, end = map(self.x, reach)
        width = max(end - start, SMALLEST)
        return min(start, WIDTH - width), width

    @property
    def ticks(self) -> list[Tick]:
        length = _tick_length(self.high - self.low, self.is_time)
        first = -(-self.low // length)
        places = [(first + number) * length for number in range(TICKS + 1)]
        return [
            Tick(percent=round(self.x(at) / WIDTH * 100, 2), words=self._words(at)) for at in places if at < self.high
        ]

    def _words(self, at: float) -> str:
        return time_words(at) if self.is_time else str(round(at))


def time_axis(times: Iterable[StepTime], shown: Iterable[int] | None = None) -> Axis:
    """Of the steps that are shown, or of all."""
    reaches = {time.index: (time.start, time.end) for time in times}
    seen = [reaches[index] for index in (reaches if shown is None else shown) if index in reaches]
    low = min((start for start, _ in seen), default=0)
    return Axis(is_time=True, reaches=reaches, low=low, high=max((end for _, end in seen), default=low))


def step_axis(steps: Sequence[StepSummary], shown: Sequence[int] | None = None) -> Axis:
    """Every step has the same width; what other steps ran inside of goes on to the last of them."""
    last = _last_inside(steps)
    reaches = {step.index: (float(step.index), last[step.index] + 1.0) for step in steps}
    indices = [step.index for step in steps] if shown is None else shown
    low = float(min(indices, default=1))
    return Axis(is_time=False, reaches=reaches, low=low, high=max(indices, default=0) + 1.0)


def _last_inside(steps: Sequence[StepSummary]) -> dict[int, int]:
    last = {step.index: step.index for step in steps}
    around = steps_around(steps)
    for step in reversed(steps):
        container = around[step.index]
        if container is not None:
            last[container] = max(last[container], last[step.index])
    return last


def _tick_length(length: float, is_time: bool) -> float:
    """The shortest that people count in, of which there are not too many."""
    if is_time:
        fitting = (each for each in _LENGTHS if length / each <= TICKS)
        return next(fitting, _DAY * max(round(length / _DAY / TICKS), 1))
    counted = (part * power for power in (1, 10, 100, 1_000, 10_000, 100_000) for part in (1, 2, 5))
    return next(each for each in counted if length / each <= TICKS)


def time_words(milliseconds: float) -> str:
    """As short as a mark on an axis has to be: `250 ms`, `1.5 s`, `1:30`, `2:05:00`."""
    if abs(milliseconds) < _SECOND:
        return f"{milliseconds:.0f} ms" if milliseconds else "0"
    if abs(milliseconds) < _MINUTE:
        return f"{milliseconds / _SECOND:g} s"
    sign = "-" if milliseconds < 0 else ""
    minutes, seconds = divmod(round(abs(milliseconds) / _SECOND), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02}:{seconds:02}" if hours else f"{sign}{minutes}:{seconds:02}"
