"""The list of sessions, for the page and for the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    Exists,
    F,
    FloatField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce

from sessions_app.core.errors import QueryError
from sessions_app.core.search.query import Query, parse_query
from sessions_app.core.search.snippets import Snippet
from sessions_app.models import Project, Replay, Run, Session
from sessions_app.queries.cursors import bad_cursor, spelled_cursor, text_of_cursor
from sessions_app.queries.search import IS_COLD, matching_runs
from sessions_app.queries.snippets import snippets_of
from sessions_app.queries.turns import in_turn, is_other, newest_replays

PAGE = 50
_PARTS_LEFT_OUT = 6
HEAVY = ("search", "content_digest", "source_digest", "kit", "verdict_reasons")
"""Columns of a run that no page shows in a list."""
_HEAVY_FOR_SCRIPTS = (
    *(name for name in HEAVY if name != "content_digest"),
    *("anomalies", "kit_lacks", "tool_names", "model_names"),
    *("strip", "span_id", "received_at", "is_example", "agent_version"),
)
"""Likewise no list of the API; making an object of a column costs more than reading it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRow:
    """A session with one of its runs that match, `_SHOWN_FIRST`, and what else is shown."""

    session: Session
    run: Run
    run_count: int
    """Recorded runs of the session, whether they match or not."""
    steps: int
    """Of all its runs that match and that no other run called; likewise `duration_ms`."""
    duration_ms: float | None
    replay: Replay | None
    """As `newest_replays` has it."""
    wrong: int
    """Recorded runs that failed, or in which something went wrong."""
    cold: int
    """Recorded runs."""
    others: Sequence[Replay]
    """Newest attempts at its runs that came to another end."""
    snippet: Snippet | None = None
    """Where the run holds the words that were searched for."""
    phrases: Sequence[str] = ()
    """What was searched for without a key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    items: list[SessionRow]
    next_cursor: str | None
    words: str = ""
    """What was searched for without a key, first of all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Sessions whose newest run started in it. The end belongs to it no more; None is open."""

    since: datetime | None = None
    until: datetime | None = None


ALWAYS = Span()


# --- order -------------------------------------------------------------------------------------

Place = datetime | float
"""Where a session stands in an order; equal ones stand in the order of their arrival."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """`column` is one of the session, or `place` for the sum of `run_column` that the row shows."""

    column: str
    is_descending: bool
    run_column: str | None = None
    unknown: float = 0.0
    """Stands for what was not captured, so that it comes last either way."""

    def after(self, place: Place, pk: int) -> Q:
        """The first condition is implied by the second and lets an index do its work."""
        to = "lt" if self.is_descending else "gt"
        here = {self.column: place}
        return Q(**{f"{self.column}__{to}e": place}) & (
            Q(**{f"{self.column}__{to}": place}) | Q(**here, **{f"pk__{to}": pk})
        )

    def keys(self) -> tuple[str, str]:
        sign = "-" if self.is_descending else ""
        return f"{sign}{self.column}", f"{sign}pk"


NEWEST = "-started"
_LAST = 1e308
ORDERS = {
    NEWEST: Order(column="last_at", is_descending=True),
    "started": Order(column="last_at", is_descending=False),
    "-took": Order(column="place", is_descending=True, run_column="duration_ms", unknown=-1.0),
    "took": Order(column="place", is_descending=False, run_column="duration_ms", unknown=_LAST),
    "-steps": Order(column="place", is_descending=True, run_column="step_count", unknown=-1.0),
    "steps": Order(column="place", is_descending=False, run_column="step_count", unknown=_LAST),
}


_WENT_WELL = Q(failure_group=None)
_SHOWN_FIRST = (
    F("parent_run_id").asc(nulls_first=True),
    Case(When(_WENT_WELL, then=1), default=0),
    Case(When(_WENT_WELL, then=-F("pk")), default=F("pk"), output_field=BigIntegerField()),
)
"""What a session was asked stands for it, and not what its agent asked of another, which may arrive later: the first
run that went wrong, else the newest."""


# --- a page ------------------------------------------------------------------------------------


def session_page(
    project: Project,
    query: Query,
    cursor: str | None = None,
    limit: int = PAGE,
    *,
    sort: str = NEWEST,
    span: Span = ALWAYS,
) -> Page:
    """Three queries for any number of rows, one more for snippets; none but the first when nothing matches."""
    order = ORDERS[sort]
    sessions = matching_sessions(project, query, span).annotate(shown_run=_shown_run(query), **_run_counts())
    sessions = sessions.annotate(steps=_sum(query, "step_count"), took=_sum(query, "duration_ms"))
    if order.run_column:
        sessions = sessions.annotate(place=_place(query, order))
    shown, next_cursor = _cut(sessions, cursor, limit, sort)
    return Page(items=_rows(shown, query.phrases), next_cursor=next_cursor, words=" ".join(query.phrases[:1]))


def sessions_with_runs(
    project: Project, query: Query, cursor: str | None = None, limit: int = PAGE
) -> tuple[list[tuple[Session, list[Run]]], str | None]:
    """Newest first, each with its recorded runs in their order, as `for_scripts` has them; the next
    cursor."""
    listed, next_cursor = _cut(matching_sessions(project, query), cursor, limit, NEWEST)
    runs_of: dict[int, list[Run]] = {session.pk: [] for session in listed}
    runs = for_scripts(Run.objects.filter(origin="recorded", session__in=list(runs_of)))
    for run in runs.order_by(*in_turn()):
        runs_of[run.session_id].append(run)
    return [(session, runs_of[session.pk]) for session in listed], next_cursor


def for_scripts(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Without what no list of the API shows. What is JSON stands in `anomalies_text` and `reasons_text`: whoever writes
    it out need not read it."""
    texts = {"anomalies_text": Cast("anomalies", TextField()), "reasons_text": Cast("verdict_reasons", TextField())}
    return runs.defer(*_HEAVY_FOR_SCRIPTS).select_related("cold_case").annotate(**texts)


def _cut(sessions: QuerySet[Session], cursor: str | None, limit: int, sort: str) -> tuple[list[Session], str | None]:
    order = ORDERS[sort]
    if cursor:
        sessions = sessions.filter(order.after(*read_cursor(cursor, sort)))
    found = list(sessions.order_by(*order.keys())[: limit + 1])
    return found[:limit], make_cursor(found[limit - 1], sort) if len(found) > limit else None


def matching_sessions(project: Project, query: Query, span: Span = ALWAYS) -> QuerySet[Session]:
    sessions = Session.objects.filter(_has_match(query), project=project)
    if span.since is not None:
        sessions = sessions.filter(last_at__gte=span.since)
    return sessions if span.until is None else sessions.filter(last_at__lt=span.until)


def shown_run_pks(sessions: QuerySet[Session], query: Query) -> list[int]:
    return [pk for pk in sessions.annotate(shown_run=_shown_run(query)).values_list("shown_run", flat=True) if pk]


def shown_runs(sessions: QuerySet[Session], query: Query) -> list[Run]:
    """The run that the row of each session shows, with its session, in their order."""
    shown = shown_run_pks(sessions, query)
    runs = Run.objects.select_related("session", "project").defer("search").in_bulk(shown)
    return [runs[pk] for pk in shown if pk in runs]


def session_row(project: Project, query: Query, session_id: str) -> SessionRow | None:
    """One session as its row shows it, with a run that matches, else one of all."""
    shown = Coalesce(_shown_run(query), _shown_run(Query()), _newest_of_any_origin())
    sessions = Session.objects.filter(project=project, session_id=session_id)
    sums = {"steps": _sum(query, "step_count"), "took": _sum(query, "duration_ms")}
    found = list(sessions.annotate(shown_run=shown, **sums, **_run_counts())[:1])
    return next(iter(_rows(found)), None)


def _rows(shown: list[Any], phrases: Sequence[str] = ()) -> list[SessionRow]:
    """`shown` are sessions with `shown_run`, the sums of its runs and `_run_counts`."""
    runs = _runs_by_pk(session.shown_run for session in shown)
    replays = newest_replays(session.pk for session in shown)
    snippets = snippets_of(runs.values(), phrases)
    return [
        SessionRow(
            session=session,
            run=runs[session.shown_run],
            run_count=session.run_count or 0,
            steps=int(session.steps or 0),
            duration_ms=session.took,
            replay=replays.get(session.shown_run),
            wrong=session.wrong_count or 0,
            cold=session.cold_count or 0,
            others=[each for each in replays.values() if each.run.session_id == session.pk and is_other(each)],
            snippet=snippets.get(session.shown_run),
            phrases=phrases,
        )
        for session in shown
        if session.shown_run in runs
    ]


def count_matching(project: Project, query: Query, at_most: int = 1000, *, span: Span = ALWAYS) -> int:
    """One more than `at_most` where there are more: counting on would take as long as there are sessions."""
    return matching_sessions(project, query, span)[: at_most + 1].count()


def count_without_each(
    project: Project, query: Query, at_most: int = 1000, *, span: Span = ALWAYS
) -> list[tuple[str, str, int]]:
    """Of each of the first parts of a query: the query without it, and how many sessions match that."""
    found = []
    for part in query.parts[:_PARTS_LEFT_OUT]:
        rest = query.without(part)
        with suppress(QueryError):
            found.append((part, rest, count_matching(project, parse_query(rest), at_most, span=span)))
    return found


def count_newer(project: Project, query: Query, cursor: str, at_most: int = 100, *, span: Span = ALWAYS) -> int:
    """How many sessions stand above the first row of a list, newest first, that was read before."""
    last_at, pk = read_cursor(cursor)
    is_newer = Q(last_at__gt=last_at) | Q(last_at=last_at, pk__gt=pk)
    return matching_sessions(project, query, span).filter(is_newer)[:at_most].count()


def _has_match(query: Query) -> Exists:
    return Exists(matching_runs(_runs_of_session(), query))


def _shown_run(query: Query) -> Subquery:
    return Subquery(matching_runs(_runs_of_session(), query).order_by(*_SHOWN_FIRST).values("pk")[:1])


def _newest_of_any_origin() -> Subquery:
    return Subquery(_runs_of_session().order_by("-pk").values("pk")[:1])


def _place(query: Query, order: Order) -> Coalesce:
    return Coalesce(_sum(query, order.run_column or "pk"), Value(order.unknown), output_field=FloatField())


def _sum(query: Query, column: str) -> Subquery:
    """What runs called is part of theirs, where these match too."""
    asked = Sum(column, filter=Q(parent_run_id=None), output_field=FloatField())
    every = Sum(column, output_field=FloatField())
    runs = matching_runs(_runs_of_session(), query).order_by().values("session")
    return Subquery(runs.annotate(sum=Coalesce(asked, every)).values("sum"), output_field=FloatField())


def _runs_of_session() -> QuerySet[Run]:
    return Run.objects.filter(session=OuterRef("pk"))


def _run_counts() -> dict[str, Subquery]:
    """How many recorded runs a session has, and in how many of them something went wrong or which are cold."""
    wrong = Q(failure_group__isnull=False)
    return {"run_count": _run_count(Q()), "wrong_count": _run_count(wrong), "cold_count": _run_count(IS_COLD)}


def _run_count(which: Q) -> Subquery:
    recorded = _runs_of_session().filter(which, origin="recorded").order_by().values("session")
    return Subquery(recorded.annotate(count=Count("pk")).values("count"))


def _runs_by_pk(pks: Iterable[int]) -> dict[int, Run]:
    runs = Run.objects.filter(pk__in=list(pks)).defer(*HEAVY).select_related("cold_case")
    return {run.pk: run for run in runs}


# --- cursors -----------------------------------------------------------------------------------


def make_cursor(session: Session, sort: str = NEWEST) -> str:
    """The place of a row; one of another order than newest first names its order."""
    place = getattr(session, ORDERS[sort].column)
    spelled = place.isoformat() if isinstance(place, datetime) else repr(place)
    named = "" if sort == NEWEST else f"{sort} "
    text = f"{named}{spelled}/{session.pk}"
    return spelled_cursor(text)


def read_cursor(cursor: str, sort: str = NEWEST) -> tuple[Place, int]:
    try:
        text = text_of_cursor(cursor)
        named, _, rest = text.rpartition(" ")
        spelled, _, pk = rest.partition("/")
        read: Callable[[str], Place] = _read_number if ORDERS[sort].run_column else _read_time
        place, number = read(spelled), int(pk)
        if (named or NEWEST) != sort or not 0 <= number < 2**63:
            raise ValueError(cursor)
    except ValueError as error:
        raise bad_cursor(cursor) from error
    return place, number


def _read_time(text: str) -> datetime:
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError(text)
    return read


def _read_number(text: str) -> float:
    read = float(text)
    if not -_LAST <= read <= _LAST:
        raise ValueError(text)
    return read
