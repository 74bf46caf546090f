"""From which step to fork a run: what failed, what went wrong, what found nothing, its last tool call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.step_summary import StepSummary
from sessions_app.services.fork_checks import Parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A step to fork from; `why` goes on from "step 41, …"."""

    step: int
    why: str


def proposals(parent: Parent) -> list[Proposal]:
    """Steps of the agent's own loop, the best first, each once. Only a run without steps has none."""
    found: dict[int, Proposal] = {}
    last = _last(parent, "tool", "the last tool call")
    for each in (*_failed(parent), *_odd(parent, 0), *_empty(parent), *_odd(parent, 1), *last):
        found.setdefault(each.step, each)
    return list(found.values()) or _without_tools(parent)


def _without_tools(parent: Parent) -> list[Proposal]:
    first = [Proposal(step=index, why="the first step") for index in sorted(parent.kinds)[:1]]
    return _last(parent, "model", "the last request to the model") or first


def _failed(parent: Parent) -> Iterator[Proposal]:
    """What a run ended in is its last error; a run that went on afterwards began to go wrong at its first."""
    rows = [row for row in _own_steps(parent) if row.has_error and row.kind in ("model", "tool")]
    for row in rows[-1:] if parent.row.status == "error" else rows[:1]:
        yield Proposal(
            step=row.index, why=f"which failed: {row.error_preview}" if row.error_preview else "which failed"
        )


def _odd(parent: Parent, weight: int) -> Iterator[Proposal]:
    """The first of the worst warnings, if it weighs this: 0 is what went wrong, 1 what may be as it was meant."""
    read = [Anomaly.from_json(item) for item in parent.row.anomalies]
    odd = [(a.weight, a.odd_step, a.message) for a in read if a.level == "warning" and a.odd_step in parent.main]
    for found, step, said in sorted(odd)[:1]:
        if found == weight:
            yield Proposal(step=step, why=f"the first anomaly: {said}")


def _empty(parent: Parent) -> Iterator[Proposal]:
    rows = (row for row in _own_steps(parent) if row.kind == "tool" and row.is_answer_empty)
    for row in islice(rows, 1):
        yield Proposal(step=row.index, why="whose answer is empty")


def _own_steps(parent: Parent) -> Iterator[StepSummary]:
    return (row for row in parent.row.steps if row.index in parent.main)


def _last(parent: Parent, kind: str, why: str) -> list[Proposal]:
    steps = sorted(index for index in parent.main if parent.kinds[index] == kind)
    return [Proposal(step=index, why=why) for index in steps[-1:]]
