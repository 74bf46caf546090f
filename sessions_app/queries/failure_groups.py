"""Runs that failed alike, one that stands for each group, and what became of it with the team's code of today."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from sessions_app.core.failures import FailureOutcome, outcome_of, signs_of
from sessions_app.core.search.query import Query
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import OF_CODE, ReplayState
from sessions_app.queries.forks import agent_of
from sessions_app.queries.search import matching_runs

MOST_READ = 2000
"""Newest failed runs that are grouped."""
MOST_SHOWN = 50
_FIELDS = (
    "run_id", "agent_name", "status", "error_preview", "anomalies", "verdict", "started_at", "received_at", "project",
    "session__session_id",
)  # fmt: skip
_OF_CONTENT = tuple(f"content__{name}" for name in ("header", "outline", "nodes", "keys"))


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureGroup:
    """Runs of one agent that failed alike."""

    agent_name: str | None
    signs: tuple[str, ...]
    runs: int
    representative: Run
    """The newest one that can be replayed."""
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """The newest replay of a representative with one agent."""

    agent: str
    replay: Replay
    outcome: FailureOutcome | None
    """None while it is open."""


def failure_groups(project: Project, query: Query) -> list[FailureGroup]:
    """Of the recorded runs that match, the group with most runs first. Raises `QueryError`."""
    groups: dict[tuple[str | None, tuple[str, ...]], list[Run]] = {}
    for run in _failed(project, query):
        if signs := _signs(run):
            groups.setdefault((run.agent_name, signs), []).append(run)
    found = [_group(agent, signs, runs) for (agent, signs), runs in groups.items()]
    return sorted(found, key=lambda group: (-group.runs, -group.representative.pk))[:MOST_SHOWN]


def _failed(project: Project, query: Query) -> QuerySet[Run]:
    runs = matching_runs(Run.objects.filter(project=project), query)
    failed = runs.exclude(status="running").exclude(Q(status="ok", anomalies=[]))
    return failed.select_related("session").only(*_FIELDS).order_by("-pk")[:MOST_READ]


def _signs(run: Run) -> tuple[str, ...]:
    return signs_of(status=run.status, error=run.error_preview, anomalies=run.anomalies)


def _group(agent: str | None, signs: tuple[str, ...], runs: Sequence[Run]) -> FailureGroup:
    """The newest run comes first."""
    times = [run.started_at or run.received_at for run in runs]
    return FailureGroup(
        agent_name=agent,
        signs=signs,
        runs=len(runs),
        representative=next((run for run in runs if run.verdict != "cold"), runs[0]),
        first_at=min(times),
        last_at=max(times),
    )


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
    return outcome_of(signs, now=_signs(made), status=made.status)
