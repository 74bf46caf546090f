"""From any id to its page: sessions, runs and replays of the user's projects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Literal, TypeVar

from django.db.models import Model, OuterRef, Q, QuerySet, Subquery

from sessions_app.core.id_words import SHORTEST, id_candidates, looks_generated
from sessions_app.models import Project, Replay, Run, Session

Kind = Literal["session", "run", "replay"]
RUN_FIELDS = ("run_id", "status", "received_at", "input_preview", "project", "session")
MOST = 20
"""Hits of each kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    kind: Kind
    found_id: str
    at: datetime
    project: Project
    session_id: str
    """The session whose page shows it; for a replay the one that it replays."""
    status: str
    words: str | None
    """First words of the input."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    tried: list[str]
    hits: list[Hit]
    is_exact: bool
    """False when ids that only begin so were found."""


def find_ids(projects: QuerySet[Project], text: str) -> Found:
    """Whole ids first; beginnings of at least six characters when there is none."""
    tried = id_candidates(text)
    exact = _hits(projects, lambda column: Q(**{f"{column}__in": tried})) if tried else []
    if exact:
        return Found(tried=tried, hits=_without_doubles(exact), is_exact=True)
    beginnings = _beginnings(tried)
    hits = _hits(projects, lambda column: _begins(column, beginnings)) if beginnings else []
    return Found(tried=tried, hits=_without_doubles(hits), is_exact=False)


def _beginnings(tried: list[str]) -> list[str]:
    """A text of one word is an id as it stands; among several, those that look like one."""
    is_single = bool(tried) and not any(character.isspace() for character in tried[0])
    long = [word for word in tried if len(word) >= SHORTEST]
    return [word for word in long if (is_single and word == tried[0]) or looks_generated(word)]


def _begins(column: str, beginnings: list[str]) -> Q:
    return reduce(or_, (Q(**{f"{column}__startswith": word}) for word in beginnings))


def _hits(projects: QuerySet[Project], condition: Callable[[str], Q]) -> list[Hit]:
    """One query for each kind of id."""
    mine = {"project__in": projects}
    runs = Run.objects.filter(condition("run_id"), **mine).select_related("project", "session")
    sessions = (
        Session.objects.filter(condition("session_id"), **mine).select_related("project").annotate(**_of_first_run())
    )
    replays = Replay.objects.filter(condition("replay_id"), **mine).select_related("project", "run__session")
    return [
        *(_session_hit(row) for row in _newest(sessions)),
        *(_run_hit(row) for row in _newest(runs.only(*RUN_FIELDS))),
        *(_replay_hit(row) for row in _newest(replays)),
    ]


Row = TypeVar("Row", bound=Model)


def _of_first_run() -> dict[str, Subquery]:
    first = Run.objects.filter(session=OuterRef("pk"), origin="recorded").order_by("pk")
    return {name: Subquery(first.values(name)[:1]) for name in ("status", "input_preview")}


def _newest(rows: QuerySet[Row]) -> QuerySet[Row]:
    return rows.order_by("-pk")[:MOST]


def _session_hit(row: Any) -> Hit:
    """A session with what `_of_first_run` adds."""
    return Hit(
        kind="session", found_id=row.session_id, at=row.last_at, project=row.project, session_id=row.session_id,
        status=row.status or "", words=row.input_preview,
    )  # fmt: skip


def _run_hit(row: Run) -> Hit:
    return Hit(
        kind="run", found_id=row.run_id, at=row.received_at, project=row.project, session_id=row.session.session_id,
        status=row.status, words=row.input_preview,
    )  # fmt: skip


def _replay_hit(row: Replay) -> Hit:
    return Hit(
        kind="replay", found_id=row.replay_id, at=row.created_at, project=row.project,
        session_id=row.run.session.session_id, status=row.state, words=row.run.input_preview,
    )  # fmt: skip


def _without_doubles(hits: list[Hit]) -> list[Hit]:
    """A session of one run often carries the run's id: that is one place, and one hit."""
    runs = {(hit.project.pk, hit.found_id, hit.session_id) for hit in hits if hit.kind == "run"}
    return [hit for hit in hits if hit.kind != "session" or (hit.project.pk, hit.found_id, hit.session_id) not in runs]


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrivals:
    """So that "not here" can be told from "not arrived"."""

    last_at: datetime | None
    newest: list[Run]


def arrivals(projects: QuerySet[Project], count: int = 5) -> Arrivals:
    runs = Run.objects.filter(project__in=projects, origin="recorded").select_related("project", "session")
    newest = list(runs.only(*RUN_FIELDS).order_by("-pk")[:count])
    return Arrivals(last_at=newest[0].received_at if newest else None, newest=newest)
