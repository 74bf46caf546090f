"""Runs that failed alike, one that stands for each group, and what became of it with the team's code of today."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min, Q, QuerySet
from django.db.models.functions import Coalesce

from sessions_app.core.failures import FailureOutcome, outcome_of, signs_of
from sessions_app.core.judge.anomalies import Anomaly
from sessions_app.core.search.query import Query
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import OF_CODE, ReplayState
from sessions_app.queries.forks import agent_of
from sessions_app.queries.search import matching_runs

MOST_SHOWN = 50
AT = Coalesce("started_at", "received_at")
_FIELDS = (
    "run_id", "agent_name", "status", "error_preview", "anomalies", "story", "verdict", "project",
    "session__session_id",
)  # fmt: skip
_OF_CONTENT = tuple(f"content__{name}" for name in ("header", "outline", "nodes", "keys"))


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureGroup:
    """Runs of one agent that failed alike."""

    fingerprint: str
    count: int
    representative: Run
    """The newest one that can be replayed, or the newest one."""
    first_at: datetime
    last_at: datetime

    @property
    def signs(self) -> tuple[str, ...]:
        """What went wrong in the representative."""
        return signs_in(self.representative)


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """The newest replay of a representative with one agent."""

    agent: str
    replay: Replay
    outcome: FailureOutcome | None
    """None while it is open."""


def failure_groups(project: Project, query: Query) -> list[FailureGroup]:
    """Of the recorded runs that match, the group with most runs first. Two queries. Raises `QueryError`."""
    matching = matching_runs(Run.objects.filter(project=project), query)
    playable = Max("pk", filter=~Q(verdict="cold"))
    rows = list(grouped(matching).annotate(playable=playable).order_by("-count", "-newest")[:MOST_SHOWN])
    chosen = [row["playable"] or row["newest"] for row in rows]
    runs = Run.objects.select_related("session").only(*_FIELDS).in_bulk(chosen)
    return [
        FailureGroup(
            fingerprint=row["failure_group"],
            count=row["count"],
            representative=runs[key],
            first_at=row["first_at"],
            last_at=row["last_at"],
        )
        for row, key in zip(rows, chosen, strict=True)
        if key in runs
    ]


def grouped(runs: QuerySet[Run]) -> Any:  # the annotations are known at run time only
    """A row for each failure group: `failure_group`, `count`, `first_at`, `last_at` and the key of the `newest` run."""
    failed = runs.filter(failure_group__isnull=False).annotate(at=AT)
    counts = {"count": Count("pk"), "first_at": Min("at"), "last_at": Max("at"), "newest": Max("pk")}
    return failed.values("failure_group").annotate(**counts)


def signs_in(run: Run) -> tuple[str, ...]:
    """What went wrong in a run, from its columns."""
    odd = [Anomaly.from_json(each) for each in run.anomalies]
    return signs_of(status=run.status, error=run.error_preview, anomalies=odd)


def attempts_at(groups: Iterable[FailureGroup]) -> dict[int, dict[str, Attempt]]:
    """By the key of the representative and the name of the agent. One query."""
    signs = {group.representative.pk: group.signs for group in groups}
    replays = Replay.objects.filter(run__in=signs, mode__in=OF_CODE)
    found: dict[int, dict[str, Attempt]] = {key: {} for key in signs}
    for replay in replays.select_related("produced_run", "content").defer(*_OF_CONTENT).order_by("pk"):
        agent = agent_of(replay)
        if agent is not None and replay.order.get("on_difference") == "play_on":
            outcome = _outcome(replay, signs[replay.run_id])
            found[replay.run_id][agent] = Attempt(agent=agent, replay=replay, outcome=outcome)
    return found


def _outcome(replay: Replay, signs: tuple[str, ...]) -> FailureOutcome | None:
    if not replay.is_over:
        return None
    made = replay.produced_run
    if made is None or replay.state != ReplayState.DONE:
        return "could_not_run"
    return outcome_of(signs, now=signs_in(made), status=made.status)
