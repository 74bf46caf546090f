"""Steps in their order and time, their state and their spans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.reading import (
    count,
    join_words,
    own_tools,
)
from sessions_app.core.run import Run, Step
from sessions_app.core.told_otherwise import contradicted_spans
from sessions_app.core.unplayed import lost_spans


def state_chain_broken(run: Run, rules: Rules) -> Iterator[Anomaly]:
    before: int | None = None
    for step in run.steps:
        if step.state is None:
            continue
        if step.state.before:
            paths = ", ".join(str(change.get("path")) for change in step.state.before[:3])
            message = f"State changed between steps, not by a step: {paths}"
            steps = (step.index,) if before is None else (before, step.index)
            yield Anomaly(code="state_chain_broken", message=message, steps=steps)
        before = step.index


def spans_under_one_id(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Two spans with one id that say different things, or a span that gives an attribute, or a key in the JSON of one,
    two values: the run is made of what ended or stands last."""
    for span_id, found in contradicted_spans(run).items():
        steps = tuple(step.index for step in found)
        message = f"The span {span_id} has two different contents; the last one is used"
        yield Anomaly(code="spans_under_one_id", message=message, steps=steps)


def spans_lost(run: Run, rules: Rules) -> Iterator[Anomaly]:
    lost = lost_spans(run)
    if lost:
        steps = tuple(step.index for step in run.steps if _has_lost_parent(step))
        message = (
            f"{count(len(lost), 'span')} around steps never arrived; their steps are shown in the span around those"
        )
        yield Anomaly(code="spans_lost", message=message, steps=steps)


def _has_lost_parent(step: Step) -> bool:
    span = step.extra.get("span")
    return isinstance(span, dict) and span.get("is_orphan") is True


def finish_order(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Parallel calls that finished in another order than they were called in."""
    groups: dict[int | None, list[tuple[Step, datetime, datetime]]] = defaultdict(list)
    for step, _ in own_tools(run):
        if step.started_at is not None and step.ended_at is not None:
            groups[step.parent].append((step, step.started_at, step.ended_at))
    for group in groups.values():
        yield from _overtakings(group)


def _overtakings(group: list[tuple[Step, datetime, datetime]]) -> Iterator[Anomaly]:
    overtaken: list[Step] = []
    for (first, _, first_end), (second, second_start, second_end) in pairwise(group):
        if second_start < first_end and second_end < first_end:
            overtaken += [first, second]
    if overtaken:
        names = join_words(list(dict.fromkeys(f"{s.name} (step {s.index})" for s in overtaken)))
        message = f"Parallel calls finished out of order: {names}"
        steps = tuple(dict.fromkeys(step.index for step in overtaken))
        yield Anomaly(code="finish_order", message=message, steps=steps, level="info")


def slow_steps(run: Run, rules: Rules) -> Iterator[Anomaly]:
    slow = [s for s in run.steps if s.duration_ms is not None and s.duration_ms > rules.slow_step_ms]
    if slow:
        seconds = max(s.duration_ms or 0 for s in slow) / 1000
        message = f"{count(len(slow), 'slow step')}, the longest took {seconds:.1f} s"
        steps = tuple(step.index for step in slow)
        yield Anomaly(code="slow_step", message=message, steps=steps, level="info")
