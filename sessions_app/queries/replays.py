"""Replays as lists and pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Q, QuerySet
from django.utils import timezone

from sessions_app.core.replay.words import ENDS
from sessions_app.models import Project, Replay, Run, SpanBatch, Trace
from sessions_app.models.replays import FORK_MODES, HELD_STATES, OPEN_STATES, ReplayState

PAGE = 50
STALLED_AFTER = timedelta(seconds=60)
BUSY_WORKERS = 8

_FORK = Q(mode__in=FORK_MODES)
_DONE = Q(state=ReplayState.DONE)
_IN_PART = Q(verdict__in=ENDS, facts__limit__isnull=False)
"""As `Replay.is_in_part`."""
_WITHIN = _DONE & ~_IN_PART
"""Those that ended before their recording did."""
_WAITING = _FORK & _WITHIN & Q(verdict="unknown_from_step")
WAITING = "waiting for an answer"
FILTERS: dict[str, Q] = {
    "all": Q(),
    "open": Q(state__in=OPEN_STATES),
    "paused": Q(state=ReplayState.PAUSED),
    WAITING: _WAITING,
    "forks": _FORK,
    "goldens": Q(is_golden=True),
    "reproduced": Q(verdict="reproduced") & ~_FORK,
    "in part": _DONE & _IN_PART,
    "different": _WITHIN & Q(verdict__in=("diverged", "ran_past_recording", "answers_left_over")),
    "failed": Q(state__in=(ReplayState.FAILED, ReplayState.CRASHED))
    | _WITHIN & Q(verdict__in=("fixture_missing", "could_not_run", "unknown_from_step")) & ~_WAITING,
    "cancelled": Q(state=ReplayState.CANCELLED),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Queue:
    """How the queue stands, over all projects of the server: workers take from one queue."""

    queued: int
    running: int
    paused: int
    """Those that wait for a person."""
    waiting: int
    """Forks that stopped because nobody knew an answer; they go on with one."""
    oldest: datetime | None
    """When the replay that waits longest was asked for."""
    workers: tuple[str, ...]
    """Those that hold a replay now."""
    is_stalled: bool
    """Something waits long, and no worker is busy with something else."""


def replays_of(project: Project) -> QuerySet[Replay]:
    """With the run and who asked, but without the run's large columns."""
    rows = Replay.objects.filter(project=project).select_related(
        "run__session", "produced_run", "content", "requested_by", "cancelled_by", "session_replay"
    )
    return rows.only(
        *(field.attname for field in Replay._meta.concrete_fields),
        "content__base_steps",
        "content__step_count",
        "produced_run__run_id",
        "produced_run__step_count",
        "run__run_id",
        "run__verdict",
        "run__content",
        "run__input_preview",
        "run__session__session_id",
        "requested_by__username",
        "cancelled_by__username",
        "session_replay__session_replay_id",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A replay as the list shows it."""

    replay: Replay
    took_ms: float | None


def replay_page(project: Project, filter_name: str, which: Q, before: int | None) -> list[Row]:
    """Newest first; `before` is the key of the last row of the page before. One more than is shown."""
    rows = replays_of(project).filter(FILTERS[filter_name], which)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return [Row(replay=replay, took_ms=took_ms(replay)) for replay in rows.order_by("-pk")[: PAGE + 1]]


def filter_counts(project: Project, which: Q) -> dict[str, int]:
    """How many of them each of `FILTERS` lists. One query."""
    counted = {f"of_{at}": Count("pk", filter=each) for at, each in enumerate(FILTERS.values())}
    found = Replay.objects.filter(which, project=project).aggregate(**counted)
    return dict(zip(FILTERS, found.values(), strict=True))


def took_ms(replay: Replay) -> float | None:
    """From the last time a worker took it up to its end."""
    if replay.claimed_at is None or replay.finished_at is None:
        return None
    return (replay.finished_at - replay.claimed_at).total_seconds() * 1000


def place_in_queue(replay: Replay) -> int:
    """Among those of its project, from 1."""
    return replays_of(replay.project).filter(state=ReplayState.QUEUED, pk__lt=replay.pk).count() + 1


def queue_of(project: Project) -> Queue:
    """Two queries. Only the counts of this project are told; whether workers are busy is not secret."""
    is_queued = Q(state=ReplayState.QUEUED)
    mine = Replay.objects.filter(Q(state__in=OPEN_STATES) | _WAITING, project=project).aggregate(
        queued=Count("pk", filter=is_queued),
        running=Count("pk", filter=Q(state__in=HELD_STATES)),
        paused=Count("pk", filter=Q(state=ReplayState.PAUSED)),
        waiting=Count("pk", filter=_WAITING),
        oldest=Min("created_at", filter=is_queued),
    )
    held = Replay.objects.filter(state__in=HELD_STATES, lease_until__gt=timezone.now())
    workers = sorted({name for name in held.values_list("worker", flat=True)[:100] if name})
    return Queue(
        **mine,
        workers=tuple(workers[:BUSY_WORKERS]),
        is_stalled=_waits_long(mine["oldest"]) and not workers,
    )


def _waits_long(since: datetime | None) -> bool:
    return since is not None and timezone.now() - since > STALLED_AFTER


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """What a replay that waits is waiting for."""

    before: int
    """How many of its queue were asked for before it and wait as well."""
    busy: int
    """How many workers and runners hold a replay now."""


def waiting_for(replay: Replay) -> Waiting:
    """Over all projects of the server, for they share the workers."""
    before = Replay.objects.filter(queue=replay.queue, state=ReplayState.QUEUED, pk__lt=replay.pk)
    return Waiting(before=before.count(), busy=busy_workers())


def busy_workers() -> int:
    """How many hold a replay, each counted once."""
    held = Replay.objects.filter(state__in=HELD_STATES, lease_until__gt=timezone.now())
    return held.values("worker").distinct().count()


def has_ended(replay: Replay) -> bool:
    """As the database has it now; also where the replay is gone."""
    return not Replay.objects.filter(pk=replay.pk, state__in=OPEN_STATES).exists()


def replay_by_id(project: Project, replay_id: str) -> Replay | None:
    rows = Replay.objects.filter(project=project, replay_id=replay_id)
    return rows.select_related(
        "run__session", "requested_by", "cancelled_by", "produced_run__session", "session_replay"
    ).first()


def run_by_id(project: Project, run_id: str) -> Run | None:
    if "\x00" in run_id:  # PostgreSQL's text cannot hold it, so no run has it
        return None
    return (
        Run.objects.select_related("session", "content", "produced_by").filter(project=project, run_id=run_id).first()
    )


def has_grown_since(replay: Replay) -> bool:
    """Whether spans of the run came after the replay was asked for: then it was of a run that was less."""
    traces = Trace.objects.filter(Q(run=replay.run_id) | Q(joined__run=replay.run_id))
    return SpanBatch.objects.filter(trace__in=traces, received_at__gt=replay.created_at).exists()
