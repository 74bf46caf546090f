"""Runs and replays for scripts, the newest first: a page at a time, by the key of the last one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import Model, QuerySet
from django.db.models.functions import Greatest

from sessions_app.core.errors import QueryError
from sessions_app.core.search.query import Query
from sessions_app.models import Project, Replay, Run
from sessions_app.queries.changes import OF_REPLAYS, OF_RUNS, changed_page
from sessions_app.queries.cursors import bad_cursor, spelled_cursor, text_of_cursor
from sessions_app.queries.replays import FILTERS
from sessions_app.queries.search import matching_runs
from sessions_app.queries.sessions import for_scripts

_Row = TypeVar("_Row", bound=Model)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """Which part of a list is asked for: what changed since a time, the oldest change first, or all, newest first."""

    cursor: str | None
    limit: int
    changed_since: datetime | None = None


OF_CONTENT = tuple(f"content__{name}" for name in ("header", "outline", "nodes", "keys"))


def runs_page(project: Project, query: Query, page: Page) -> tuple[list[Run], str | None]:
    """Runs that match, as `for_scripts` has them; the next cursor. Raises `QueryError`."""
    runs = matching_runs(Run.objects.filter(project=project), query)
    return _page(for_scripts(runs).select_related("session"), OF_RUNS, page)


def replays_page(project: Project, filter_name: str, page: Page) -> tuple[list[Replay], str | None]:
    """Replays of the project under one of `FILTERS`; the next cursor. Raises `QueryError`."""
    if filter_name not in FILTERS:
        raise QueryError(f"q must be one of: {', '.join(FILTERS)}.", part=filter_name[:200])
    return _page(_whole(Replay.objects.filter(project=project)).filter(FILTERS[filter_name]), OF_REPLAYS, page)


def replays_of_run(run: Run, page: Page) -> tuple[list[Replay], str | None]:
    return _page(_whole(run.replays.all()), OF_REPLAYS, page)


def _page(rows: QuerySet[_Row], changed: Greatest, page: Page) -> tuple[list[_Row], str | None]:
    if page.changed_since is None:
        return page_of(rows, page.cursor, page.limit)
    return changed_page(rows, changed, page.changed_since, page.cursor, page.limit)


def _whole(replays: QuerySet[Replay]) -> QuerySet[Replay]:
    return replays.select_related("run", "produced_run", "session_replay", "content").defer(*OF_CONTENT)


def page_of(rows: QuerySet[_Row], cursor: str | None, limit: int) -> tuple[list[_Row], str | None]:
    """The rows behind the cursor, newest first, and the next cursor. Raises `QueryError`."""
    if cursor:
        rows = rows.filter(pk__lt=_read(cursor))
    found = list(rows.order_by("-pk")[: limit + 1])
    return found[:limit], spelled_cursor(str(found[limit - 1].pk)) if len(found) > limit else None


def _read(cursor: str) -> int:
    try:
        key = int(text_of_cursor(cursor))
    except ValueError:
        key = -1
    if not 0 <= key < 2**63:
        raise bad_cursor(cursor)
    return key
