"""What needs somebody now: replays, loops, cold cases that can be looked into again, and whether recordings arrive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Min, Q, QuerySet

from sessions_app.core.judge.reading import count
from sessions_app.models import IngestNote, Project, Replay, Run
from sessions_app.models.replays import OPEN_STATES, ReplayState
from sessions_app.queries.cold_cases import replayable_again
from sessions_app.queries.failure_groups import AT, told_of
from sessions_app.queries.replays import FILTERS, WAITING, replays_of
from sessions_app.queries.search import IS_COLD
from sessions_app.queries.sessions import HEAVY

SHOWN = 5
READ = 200
"""Replays that are over; those that came to the same are one line."""
DAY = timedelta(days=1)


def finished_replays(project: Project, since: datetime) -> list[Replay]:
    """The latest that are over since then, newest first."""
    over = replays_of(project).filter(is_golden=False, finished_at__gt=since).exclude(FILTERS[WAITING])
    return list(over.order_by("-finished_at")[:READ])


def open_replays(project: Project) -> list[Replay]:
    """Forks that wait for an answer first: they go on with nobody else."""
    is_shown = Q(state__in=list(OPEN_STATES)) | FILTERS[WAITING]
    found = Replay.objects.filter(is_shown, project=project).select_related("run")
    return list(found.annotate(waits=Q(state=ReplayState.DONE)).order_by("-waits", "pk")[: SHOWN + 1])


def open_counts(project: Project) -> dict[str, int]:
    """How many replays are in each state that is not the end, and how many forks wait for an answer."""
    is_shown = Q(state__in=list(OPEN_STATES)) | FILTERS[WAITING]
    found = Replay.objects.filter(is_shown, project=project).order_by().values_list("state")
    return {WAITING if state == ReplayState.DONE else state: count for state, count in found.annotate(Count("pk"))}


def loops(project: Project, now: datetime) -> list[Run]:
    """Runs of the last day in which a call was made again and again, the longest first."""
    found = _recent(project, now).filter(anomalies__contains=[{"code": "many_tool_calls"}])
    again = found.filter(anomalies__contains=[{"code": "duplicate_call"}])
    return list(again.select_related("content").order_by("-tool_call_count", "-pk")[: SHOWN + 1])


def repeats_in_words(run: Run) -> str:
    """As the story of the run tells it: `search called 14 × with the same arguments`."""
    told = (part for part in run.story.split(" · ") if " called " in part)
    return next(told, count(run.tool_call_count, "tool call"))


def _recent(project: Project, now: datetime) -> QuerySet[Run]:
    runs = Run.objects.filter(project=project, origin="recorded", session__last_at__gt=now - DAY)
    return runs.defer(*HEAVY).select_related("session")


@dataclass(frozen=True, kw_only=True, slots=True)
class Thawed:
    """Cold cases whose failure came again in a run that can be replayed."""

    newest: Run
    cold: int

    @property
    def told(self) -> str:
        """What went wrong."""
        return told_of(self.newest)


def thawed(project: Project) -> list[Thawed]:
    """One for each failure of the newest cold cases. Two queries."""
    failed = Run.objects.filter(project=project, origin="recorded", failure_group__isnull=False)
    cold = failed.filter(IS_COLD).defer(*HEAVY).select_related("session", "cold_case").order_by("-pk")[:LOOKED_AT]
    again = replayable_again(project, {run.failure_group for run in cold})
    found: dict[str | None, list[Run]] = {}
    for run in cold:
        if run.failure_group in again:
            found.setdefault(run.failure_group, []).append(run)
    return [Thawed(newest=runs[0], cold=len(runs)) for runs in list(found.values())[: SHOWN + 1]]


LOOKED_AT = 200
"""Cold cases."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pulse:
    """Whether recordings arrive and replays are taken up."""

    runs_today: int
    running: int
    """Runs that are not over."""
    last_run: datetime | None
    last_failed: datetime | None
    refused_today: int
    last_spans: datetime | None
    oldest_queued: datetime | None

    @property
    def last_arrival(self) -> datetime | None:
        return max(filter(None, (self.last_run, self.last_spans)), default=None)


STALLED = timedelta(minutes=1)


def pulse(project: Project, now: datetime) -> Pulse:
    """Three queries."""
    runs = Run.objects.filter(project=project, origin="recorded").aggregate(
        today=Count("pk", filter=Q(received_at__gt=now - DAY)),
        running=Count("pk", filter=Q(status="running")),
        last=Max("received_at"),
        failed=Max(AT, filter=Q(failure_group__isnull=False)),
    )
    notes = IngestNote.objects.filter(project=project).aggregate(
        refused=Count("pk", filter=~Q(words="") & Q(last_at__gt=now - DAY)),
        spans=Max("last_at", filter=Q(words="")),
    )
    queued = Replay.objects.filter(project=project, state=ReplayState.QUEUED).aggregate(at=Min("created_at"))
    return Pulse(
        runs_today=runs["today"],
        running=runs["running"],
        last_run=runs["last"],
        last_failed=runs["failed"],
        refused_today=notes["refused"],
        last_spans=notes["spans"],
        oldest_queued=queued["at"],
    )
