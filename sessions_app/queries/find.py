"""From any id to its page: sessions, runs, replays, traces and spans of the user's projects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Literal, TypeVar

from django.db.models import Model, OuterRef, Q, QuerySet, Subquery
from rapidfuzz import fuzz, process

from sessions_app.core.search.id_words import SHORTEST, id_candidates, looks_generated
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Golden, GoldenRun, Project, Replay, Run, Session, Trace
from sessions_app.queries.find_spans import (
    runs_of_spans,
    runs_of_traces,
    steps_of_spans,
    telemetry_ids,
    traces_without_run,
)
from sessions_app.queries.turns import in_turn

Kind = Literal["session", "run", "replay", "golden", "golden run", "span", "trace"]
RUN_FIELDS = ("run_id", "origin", "status", "received_at", "started_at", "input_preview", "project", "session")
_OF_MAKER = tuple(
    f"produced_by__{column}"
    for column in ("created_at", "mode", "state", "verdict", "facts", "stopped_at", "expectation_met")
)
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
    words: str | None
    """First words of the input; of a golden its name; of a trace that could not be read, why."""
    run_id: str = ""
    """Of a span: the run that it belongs to."""
    step: int | None = None
    """Of a span: the step that it tells of; None when it stands for the run itself."""
    origin: str = "recorded"
    """Of a run."""
    run: Run | None = None
    replay: Replay | None = None
    """What is found has the state of this run or of this replay; neither where it has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    tried: list[str]
    hits: list[Hit]
    is_exact: bool
    """False when ids that only begin so were found."""


def find_ids(projects: QuerySet[Project], text: str) -> Found:
    """Whole ids first; beginnings of at least six characters when there is none. Spans are found by whole ids alone."""
    candidates = id_candidates(text)
    spans = telemetry_ids(candidates)
    tried = list(dict.fromkeys([*candidates, *spans]))
    exact = _hits(projects, lambda column: Q(**{f"{column}__in": tried})) if tried else []
    exact = [*_span_hits(projects, spans), *map(_run_hit, runs_of_traces(projects, spans)), *exact]
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
    traces = traces_without_run(projects, condition)
    mine = {"project__in": projects}
    runs = Run.objects.filter(condition("run_id"), **mine).select_related("project", "session", "produced_by")
    sessions = (
        Session.objects.filter(condition("session_id"), **mine).select_related("project").annotate(**_of_first_run())
    )
    replays = Replay.objects.filter(condition("replay_id"), **mine).select_related("project", "run__session")
    return [
        *(_session_hit(row) for row in _newest(sessions)),
        *(_run_hit(row) for row in _newest(runs.only(*RUN_FIELDS, *_OF_MAKER))),
        *(_replay_hit(row) for row in _newest(replays)),
        *_golden_hits(projects, condition),
        *map(_trace_hit, traces),
    ]


def _golden_hits(projects: QuerySet[Project], condition: Callable[[str], Q]) -> list[Hit]:
    goldens = Golden.objects.filter(condition("golden_id"), project__in=projects).select_related("project")
    runs = GoldenRun.objects.filter(condition("golden_run_id"), golden__project__in=projects)
    return [
        *(_golden_hit("golden", row.golden_id, row, row) for row in _newest(goldens)),
        *(
            _golden_hit("golden run", row.golden_run_id, row, row.golden)
            for row in _newest(runs.select_related("golden__project"))
        ),
    ]


def _span_hits(projects: QuerySet[Project], ids: list[str]) -> list[Hit]:
    return [
        *(_span_hit(run, _asked(step, ids), step.index) for run, step in steps_of_spans(projects, ids)),
        *(_span_hit(run, run.span_id or "", None) for run in runs_of_spans(projects, ids)),
    ]


def _asked(step: StepSummary, ids: list[str]) -> str:
    return next((found for found in ids if bytes.fromhex(found) in step.span_ids), "")


Row = TypeVar("Row", bound=Model)


def _of_first_run() -> dict[str, Subquery]:
    first = Run.objects.filter(session=OuterRef("pk"), origin="recorded").order_by(*in_turn())
    return {"input_preview": Subquery(first.values("input_preview")[:1])}


def _newest(rows: QuerySet[Row]) -> QuerySet[Row]:
    return rows.order_by("-pk")[:MOST]


def _session_hit(row: Any) -> Hit:
    """A session with what `_of_first_run` adds."""
    return Hit(
        kind="session", found_id=row.session_id, at=row.started_at, project=row.project,
        session_id=row.session_id, words=row.input_preview,
    )  # fmt: skip


def _run_hit(row: Run) -> Hit:
    """Of one that was made here, when that was, and not when its recording was."""
    made_by = _made_by(row)
    at = made_by.created_at if made_by else row.started_at or row.received_at
    return Hit(
        kind="run", found_id=row.run_id, at=at, project=row.project, session_id=row.session.session_id, run=row,
        words=row.input_preview, origin=row.origin,
    )  # fmt: skip


def _made_by(row: Run) -> Replay | None:
    return None if row.origin == "recorded" else getattr(row, "produced_by", None)


def _replay_hit(row: Replay) -> Hit:
    return Hit(
        kind="replay", found_id=row.replay_id, at=row.created_at, project=row.project,
        session_id=row.run.session.session_id, replay=row, words=row.run.input_preview,
    )  # fmt: skip


def _golden_hit(kind: Kind, found_id: str, row: Golden | GoldenRun, golden: Golden) -> Hit:
    return Hit(
        kind=kind, found_id=found_id, at=row.created_at, project=golden.project, session_id="", words=golden.name,
    )  # fmt: skip


def _span_hit(run: Run, span_id: str, step: int | None) -> Hit:
    return Hit(
        kind="span", found_id=span_id, at=run.started_at or run.received_at, project=run.project,
        session_id=run.session.session_id, words=run.input_preview, run_id=run.run_id, step=step,
    )  # fmt: skip


def _trace_hit(row: Trace) -> Hit:
    return Hit(
        kind="trace", found_id=row.trace_id, at=row.changed_at, project=row.project, session_id="",
        words=row.problem_words,
    )  # fmt: skip


def _without_doubles(hits: list[Hit]) -> list[Hit]:
    """A session of one run often carries the run's id, and a log line names a span beside its trace: that is one
    place, and one hit. What was recorded comes before what forks and replays made of it."""
    inside = {(hit.project.pk, hit.run_id, hit.session_id) for hit in hits if hit.kind == "span"}
    kept = [hit for hit in hits if hit.kind != "run" or _place(hit) not in inside]
    covered = inside | {_place(hit) for hit in kept if hit.kind == "run"}
    found = [hit for hit in kept if hit.kind != "session" or _place(hit) not in covered]
    return sorted(found, key=lambda hit: hit.origin != "recorded")


def _place(hit: Hit) -> tuple[int, str, str]:
    return hit.project.pk, hit.found_id, hit.session_id


NEAR = 3
LATEST = 2000
"""Runs whose ids are compared with one that is not there."""
LIKENESS = 80
"""Of 100: one letter of six may be another, or two of ten."""


def near_runs(projects: QuerySet[Project], text: str) -> list[Run]:
    """Recent runs whose ids are almost the one that was typed, the most alike first. Two queries."""
    if len(text) < SHORTEST or any(character.isspace() for character in text):
        return []
    mine = Run.objects.filter(project__in=projects, origin="recorded")
    ids = dict(mine.order_by("-pk").values_list("pk", "run_id")[:LATEST])
    found = [pk for _, _, pk in process.extract(text, ids, scorer=fuzz.ratio, limit=NEAR, score_cutoff=LIKENESS)]
    rows = Run.objects.select_related("project", "session").only(*RUN_FIELDS).in_bulk(found)
    return [rows[pk] for pk in found]


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrivals:
    """So that "not here" can be told from "not arrived"."""

    last_at: datetime | None
    newest: list[Run]


def newest_project(projects: QuerySet[Project]) -> Project | None:
    """The one where a recording arrived last."""
    runs = Run.objects.filter(project__in=projects, origin="recorded").select_related("project").only("project")
    newest = runs.order_by("-pk").first()
    return newest.project if newest else None


def arrivals(projects: QuerySet[Project], count: int = 5) -> Arrivals:
    runs = Run.objects.filter(project__in=projects, origin="recorded").select_related("project", "session")
    newest = list(runs.only(*RUN_FIELDS).order_by("-pk")[:count])
    return Arrivals(last_at=newest[0].received_at if newest else None, newest=newest)
