"""One thing done to every session that a query found: asked for once, gone through in pieces by workers.

Each piece is one transaction in which the job's row is held: a worker that is killed takes back what it had not
finished, and another one goes on there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Max
from django.utils import timezone

from sessions_app.core.errors import NotReplayable, RecordError
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.search.query import Query, parse_query
from sessions_app.models import BulkJob, Project, Replay, Run, Session
from sessions_app.models.bulk_jobs import BulkAction
from sessions_app.models.replays import OPEN_STATES
from sessions_app.queries.sessions import Span, matching_sessions, shown_run_pks, shown_runs
from sessions_app.services.cold_cases import check_reason, mark_cold
from sessions_app.services.replays import cancel_all, request_replay
from sessions_app.services.tags import change_tags, read_tags

_PIECE = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a query finds now: how many sessions, and the last of them to have arrived."""

    query: str
    span: Span
    total: int
    newest: int


def result_of(project: Project, query: str, span: Span, *, newest: int | None = None) -> Result:
    """One query. `newest` keeps out what arrived since somebody was told the number. Raises `QueryError`."""
    sessions = matching_sessions(project, parse_query(query), span)
    if newest is not None:
        sessions = sessions.filter(pk__lte=newest)
    found = sessions.aggregate(total=Count("pk"), newest=Max("pk"))
    return Result(query=query, span=span, total=found["total"], newest=found["newest"] or 0)


def ask_for(
    project: Project, result: Result, action: BulkAction, *, words: str = "", user: User | None, request_key: str
) -> BulkJob:
    """The same `request_key` again gives the same job. Raises `RecordError` for words that cannot be."""
    if action == BulkAction.COLD:
        check_reason(words)
    if action in (BulkAction.TAG, BulkAction.UNTAG) and not read_tags([words]):
        raise RecordError("Type a tag first.", field="tags")
    job, _ = BulkJob.objects.get_or_create(
        project=project,
        request_key=request_key,
        defaults={
            "action": action,
            "words": words,
            "query": result.query,
            "since": result.span.since,
            "until": result.span.until,
            "newest": result.newest,
            "total": result.total,
            "requested_by": user,
        },
    )
    return job


def exported_runs(project: Project, result: Result) -> list[int]:
    """Primary keys of the runs that the rows of a result show, the newest session first."""
    query = parse_query(result.query)
    sessions = matching_sessions(project, query, result.span).filter(pk__lte=result.newest)
    return shown_run_pks(sessions.order_by("-last_at", "-pk"), query)


# --- the work ----------------------------------------------------------------------------------


@transaction.atomic
def go_on(job: BulkJob | None = None) -> bool:
    """One piece of this job, or of the oldest that nobody else is at; whether there was something to do."""
    waiting = BulkJob.objects.filter(finished_at=None).order_by("pk").select_related("project", "requested_by")
    if job is not None:
        waiting = waiting.filter(pk=job.pk)
    held = waiting.select_for_update(skip_locked=True, of=("self",)).first()
    if held is None:
        return False
    _next_piece(held)
    held.save()
    return True


def _next_piece(job: BulkJob) -> None:
    query = parse_query(job.query)
    runs = _runs(job, query)
    if not runs:
        job.finished_at = timezone.now()
        return
    job.changed += _ACTIONS[BulkAction(job.action)](job, runs)
    job.position, job.looked_at = runs[-1].session_id, job.looked_at + len(runs)


def _runs(job: BulkJob, query: Query) -> list[Run]:
    """The run that the row of each session shows."""
    span = Span(since=job.since, until=job.until)
    sessions = matching_sessions(job.project, query, span).filter(pk__gt=job.position, pk__lte=job.newest)
    return shown_runs(sessions.order_by("pk")[:_PIECE], query)


def _replay(job: BulkJob, runs: list[Run]) -> int:
    return sum(_is_queued(job, run) for run in runs if run.verdict != "cold")


def _is_queued(job: BulkJob, run: Run) -> bool:
    try:
        request_replay(run=run, user=job.requested_by, request_key=f"{job.bulk_job_id}-{run.pk}")
    except (ForkError, NotReplayable):
        return False
    return True


def _cancel(job: BulkJob, runs: list[Run]) -> int:
    still_open = Replay.objects.filter(run__in=runs, state__in=OPEN_STATES)
    count = still_open.values("run").distinct().count()
    cancel_all(still_open, job.requested_by)
    return count


def _cold(job: BulkJob, runs: list[Run]) -> int:
    for run in runs:
        mark_cold(run=run, reason=job.words, user=job.requested_by)
    return len(runs)


def _tag(job: BulkJob, runs: list[Run]) -> int:
    """One after the other: a session that would have too many tags keeps its own."""
    tags, way = read_tags([job.words]), "remove" if job.action == BulkAction.UNTAG else "add"
    return sum(_is_tagged(run.session, way, tags) for run in runs)


def _is_tagged(session: Session, way: str, tags: set[str]) -> bool:
    try:
        change_tags([session], **{way: tags})
    except RecordError:
        return False
    return True


_ACTIONS: dict[BulkAction, Callable[[BulkJob, list[Run]], int]] = {
    BulkAction.REPLAY: _replay,
    BulkAction.CANCEL: _cancel,
    BulkAction.COLD: _cold,
    BulkAction.TAG: _tag,
    BulkAction.UNTAG: _tag,
}
