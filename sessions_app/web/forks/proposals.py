"""From which step to fork a run: where it failed, where it first looks odd, its last tool call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.judge.anomalies.anomaly import Anomaly, first_odd_step
from sessions_app.services.fork_checks import Parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A step to fork from; `why` goes on from "step 41, …"."""

    step: int
    why: str


def proposals(parent: Parent) -> list[Proposal]:
    """Steps of the agent's own loop, the best first, each once. Only a run without steps has none."""
    found: dict[int, Proposal] = {}
    for each in (*_failed(parent), *_odd(parent), *_last(parent, "tool", "the last tool call")):
        found.setdefault(each.step, each)
    return list(found.values()) or _without_tools(parent)


def _without_tools(parent: Parent) -> list[Proposal]:
    first = [Proposal(step=index, why="the first step") for index in sorted(parent.kinds)[:1]]
    return _last(parent, "model", "the last request to the model") or first


def _failed(parent: Parent) -> Iterator[Proposal]:
    """What a run ended in is its last error; a run that went on afterwards began to go wrong at its first."""
    rows = [row for row in parent.row.steps if row.has_error and row.kind in ("model", "tool")]
    failed = [row for row in rows if row.index in parent.main]
    for row in failed[-1:] if parent.row.status == "error" else failed[:1]:
        yield Proposal(
            step=row.index, why=f"which failed: {row.error_preview}" if row.error_preview else "which failed"
        )


def _odd(parent: Parent) -> Iterator[Proposal]:
    anomalies = [found for item in parent.row.anomalies if (found := Anomaly.from_json(item)).odd_step in parent.main]
    step = first_odd_step(anomalies)
    if step is not None:
        said = next(each.message for each in anomalies if each.level == "warning" and each.odd_step == step)
        yield Proposal(step=step, why=f"the first anomaly: {said}")


def _last(parent: Parent, kind: str, why: str) -> list[Proposal]:
    steps = sorted(index for index in parent.main if parent.kinds[index] == kind)
    return [Proposal(step=index, why=why) for index in steps[-1:]]
