"""When the spans of a run began and ended, in nanoseconds since 1970.

Where a step has no recorded time it begins one nanosecond after the step before it: the order is kept, and nothing is
claimed that a clock could have shown.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sessions_app.core.run import Run
from sessions_app.core.spans.span import nanoseconds_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = 2**63 - 1
_LATEST_START = _LATEST - 1_000_000
"""With room for steps that begin one nanosecond after another."""

Times = tuple[int, int]
"""Start and end."""


def times_of(run: Run) -> tuple[Times, list[Times]]:
    """Of the run as a whole, and of its steps in order."""
    known = [at for at in (run.started_at, *(step.started_at for step in run.steps)) if at is not None]
    start = _nanoseconds(run.started_at or min(known, default=_EPOCH))
    before, steps = start, []
    for step in run.steps:
        before = before + 1 if step.started_at is None else _nanoseconds(step.started_at)
        steps.append((before, _end(before, step.duration_ms)))
    end = _end(start, run.duration_ms) if run.duration_ms is not None else max((e for _, e in steps), default=start)
    return (start, max(start, end)), steps


def _nanoseconds(at: datetime) -> int:
    """At least 1, as 0 stands for an unknown time, and no later than a span can say: in the year 2262."""
    return min(_LATEST_START, max(1, nanoseconds_of(at)))


def _end(start: int, duration_ms: float | None) -> int:
    if duration_ms is None or duration_ms < 0:
        return start
    return min(_LATEST, start + round(duration_ms * 1_000_000))
