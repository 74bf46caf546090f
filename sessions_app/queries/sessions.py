"""The list of sessions, newest first, for the page and for the API."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet, Subquery, prefetch_related_objects

from sessions_app.core.errors import QueryError
from sessions_app.core.query import Query
from sessions_app.models import Project, Replay, Run, Session
from sessions_app.queries.search import matching_runs

PAGE = 50
HEAVY = ("header", "search", "prior_node", "final_node", "content_digest", "source_digest", "kit", "verdict_reasons")
"""Columns of a run that no list shows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRow:
    """A session with the newest of its runs that match, and what else the list shows of it."""

    session: Session
    run: Run
    run_count: int
    """Recorded runs of the session, whether they match or not."""
    replay: Replay | None
    """The newest replay of the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    items: list[SessionRow]
    next_cursor: str | None


def session_page(project: Project, query: Query, cursor: str | None = None, limit: int = PAGE) -> Page:
    """Three queries for any number of rows; none but the first when nothing matches."""
    sessions = matching_sessions(project, query).annotate(shown_run=_newest_match(query), run_count=_run_count())
    if cursor:
        sessions = sessions.filter(_after(*read_cursor(cursor)))
    found = list(sessions.order_by("-last_at", "-pk")[: limit + 1])
    shown = found[:limit]
    runs = _runs_by_pk(session.shown_run for session in shown)
    replays = _newest_replays(runs)
    items = [
        SessionRow(
            session=session,
            run=runs[session.shown_run],
            run_count=session.run_count or 0,
            replay=replays.get(session.shown_run),
        )
        for session in shown
        if session.shown_run in runs
    ]
    return Page(items=items, next_cursor=make_cursor(shown[-1]) if len(found) > limit else None)


def matching_sessions(project: Project, query: Query) -> QuerySet[Session]:
    return Session.objects.filter(_has_match(query), project=project)


def count_newer(project: Project, query: Query, cursor: str, at_most: int = 100) -> int:
    """How many sessions stand above the first row of a list that was read before."""
    last_at, pk = read_cursor(cursor)
    is_newer = Q(last_at__gt=last_at) | Q(last_at=last_at, pk__gt=pk)
    return matching_sessions(project, query).filter(is_newer)[:at_most].count()


def with_runs(sessions: Iterable[Session]) -> list[Session]:
    """All recorded runs of these sessions, in the order of their arrival, as `session.recorded_runs`."""
    light = Run.objects.filter(origin="recorded").defer(*HEAVY).select_related("cold_case").order_by("pk")
    listed = list(sessions)
    prefetch_related_objects(listed, Prefetch("runs", queryset=light, to_attr="recorded_runs"))
    return listed


def _has_match(query: Query) -> Exists:
    return Exists(matching_runs(Run.objects.filter(session=OuterRef("pk")), query))


def _newest_match(query: Query) -> Subquery:
    return Subquery(matching_runs(Run.objects.filter(session=OuterRef("pk")), query).order_by("-pk").values("pk")[:1])


def _run_count() -> Subquery:
    recorded = Run.objects.filter(session=OuterRef("pk"), origin="recorded").order_by().values("session")
    return Subquery(recorded.annotate(count=Count("pk")).values("count"))


def _runs_by_pk(pks: Iterable[int]) -> dict[int, Run]:
    runs = Run.objects.filter(pk__in=list(pks)).defer(*HEAVY).select_related("cold_case")
    return {run.pk: run for run in runs}


def _newest_replays(run_pks: Iterable[int]) -> dict[int, Replay]:
    newest = Replay.objects.filter(run__in=list(run_pks)).order_by("run_id", "-pk").distinct("run_id")
    return {replay.run_id: replay for replay in newest.only("replay_id", "run_id", "state", "verdict")}


def _after(last_at: datetime, pk: int) -> Q:
    """The first condition is implied by the second and lets the index do its work."""
    return Q(last_at__lte=last_at) & (Q(last_at__lt=last_at) | Q(last_at=last_at, pk__lt=pk))


def make_cursor(session: Session) -> str:
    text = f"{session.last_at.isoformat()}/{session.pk}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[datetime, int]:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        at, _, pk = text.partition("/")
        last_at, number = datetime.fromisoformat(at), int(pk)
        if last_at.tzinfo is None or not 0 <= number < 2**63:
            raise ValueError(cursor)
    except (ValueError, binascii.Error) as error:
        raise QueryError("The cursor is not one that this server gave.", part=cursor[:200]) from error
    return last_at, number
