"""The panel beside the list: one session at a glance, and what can be done with it."""

from __future__ import annotations

from typing import Any

from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.search.query import Query
from sessions_app.models import Project, Run
from sessions_app.queries.sessions import SessionRow, session_row
from sessions_app.queries.turns import in_turn
from sessions_app.web.diff.partners import diff_partners
from sessions_app.web.run_pages import RUNS, RunPlace, run_address
from sessions_app.web.session_list.address import ListAddress
from sessions_app.web.sessions.oddities import odd_title, rest_of_story, told_anomalies

ANOMALIES = 5
REPLAYS = 5
_LIGHT = ("pk", "run_id", "origin", "session_id")


def panel_context(project: Project, query: Query, address: ListAddress) -> dict[str, Any]:
    """A fixed number of queries, whatever the session holds; none when no session is looked at."""
    if not address.peek:
        return {}
    row = session_row(project, query, address.peek)
    return {"peeked": _facts(project, row) if row else None}


def _facts(project: Project, row: SessionRow) -> dict[str, Any]:
    run = Run.objects.select_related("session", "cold_case", "produced_by").defer("search").get(pk=row.run.pk)
    siblings = tuple(row.session.runs.only(*_LIGHT).order_by(*in_turn())[:RUNS])
    replays = list(run.replays.select_related("produced_run").order_by("-pk")[:REPLAYS])
    place = RunPlace(run=run, number=_number(siblings, run), siblings=siblings)
    cause, odd = told_anomalies([Anomaly.from_json(item) for item in run.anomalies])
    return {
        "run": run,
        "session": row.session,
        "run_count": row.run_count,
        "number": place.number,
        "address": run_address(run, project) if len(siblings) > 1 else place.session_address(project).rstrip("?&"),
        "step_address": place.session_address(project),
        "cause": cause,
        "story": rest_of_story(run, cause) if cause else run.story,
        "odd": odd[:ANOMALIES],
        "odd_count": sum(each.times for each in odd),
        "odd_title": odd_title(cause is not None, odd),
        "more_odd": len(odd) - ANOMALIES,
        "lacking": [line for line in run.kit.get("lines", []) if line["status"] != "captured"],
        "kit_size": len(run.kit.get("lines", [])),
        "cold_case": getattr(run, "cold_case", None),
        "replays": replays,
        "partners": diff_partners(place, replays),
    }


def _number(siblings: tuple[Run, ...], run: Run) -> int:
    return next((i for i, other in enumerate(siblings, start=1) if other.pk == run.pk), len(siblings))
