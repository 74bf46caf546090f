"""All runs of a session replayed: one page, one table, one report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from sessions_app.core.errors import NotReplayable
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.reports.session_report import SessionReport, as_json, as_markdown, as_text
from sessions_app.models import Project, Session, SessionReplay
from sessions_app.queries.access import has_role
from sessions_app.queries.replays import queue_of
from sessions_app.queries.session_replays import recorded_runs_of, session_replay_by_id
from sessions_app.services.session_replays import cancel_session_replay, request_session_replay, session_report
from sessions_app.web.access import project_page
from sessions_app.web.downloads import shown_file
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.live import live_part_of
from sessions_app.web.replays.report import css_of
from sessions_app.web.run_pages import session_of


@require_POST
@project_page("member")
def replay_all(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    return _start(request, project, session_of(project, session_id))


@require_POST
@project_page("member")
def again(request: HttpRequest, project: Project, session_replay_id: str) -> HttpResponse:
    """The same order once more, for the runs that the session has now."""
    asked = _found(project, session_replay_id)
    return _start(request, project, asked.session, mode=asked.mode, order=asked.order)


def _start(request: HttpRequest, project: Project, session: Session, **wanted: Any) -> HttpResponse:
    try:
        asked = request_session_replay(session=session, user=request.user, **wanted)  # type: ignore[arg-type]  # signed in: project_page
    except (NotReplayable, ForkError) as problem:
        messages.warning(request, str(problem))
        return redirect("session", project.slug, session.session_id)
    return redirect("session_replay", project.slug, asked.session_replay_id)


@require_GET
@project_page()
def session_replay(request: HtmxHttpRequest, project: Project, session_replay_id: str) -> HttpResponseBase:
    """While a run is open the page asks again; the answer that is final asks no more."""
    asked = _found(project, session_replay_id)
    report = session_report(asked)
    context = _context(request, project, asked, report)
    if request.htmx:
        seen = [context["queue"], *((run.replay_id, run.state, run.verdict) for run in report.runs)]
        return live_part_of(request, "replays/_session.html", context, seen)
    return render(request, "replays/session.html", context)


def _context(request: HttpRequest, project: Project, asked: SessionReplay, report: SessionReport) -> dict[str, Any]:
    moves = report.state in ("queued", "running")
    recorded = recorded_runs_of(asked.session, [run.run_id for run in report.runs])
    return {
        "project": project,
        "section": "replays",
        "asked": asked,
        "report": report,
        **_reasons(report),
        "rows": [(run, recorded.get(run.run_id)) for run in report.runs],
        "outcomes": _outcomes(report),
        "session_address": reverse("session", args=[project.slug, asked.session.session_id]),
        "css": css_of(report.verdict),
        "is_live": moves,
        "queue": queue_of(project) if moves else None,
        "may_change": has_role(request.user, project, "member"),
    }


def _reasons(report: SessionReport) -> dict[str, Any]:
    """What several runs have in common is told once above them, what one alone has stands in its row."""
    shared = [group for group in report.unreproduced if len(group.runs) > 1 and group.first.reason]
    told = {run.replay_id for group in shared for run in group.runs}
    own = {run.replay_id for run in report.runs if run.reason and run.replay_id not in told}
    return {"shared": shared, "own_reasons": own}


def _outcomes(report: SessionReport) -> list[tuple[str, str, int]]:
    """How many runs came to what: the table and the key of a state, the most first."""
    told = [
        ("replay_verdict", run.verdict) if run.verdict and run.state == "done" else ("replay", run.state)
        for run in report.runs
    ]
    return [(table, key, number) for (table, key), number in Counter(told).most_common()]


@require_POST
@project_page("member")
def cancel(request: HttpRequest, project: Project, session_replay_id: str) -> HttpResponse:
    cancel_session_replay(_found(project, session_replay_id), request.user)  # type: ignore[arg-type]  # signed in: project_page
    return redirect("session_replay", project.slug, session_replay_id)


def _json(report: SessionReport) -> str:
    return json.dumps(as_json(report), ensure_ascii=False, indent=2)


_FILES: dict[str, tuple[str, Callable[[SessionReport], str]]] = {
    "md": ("text/plain; charset=utf-8", as_markdown),
    "txt": ("text/plain; charset=utf-8", as_text),
    "json": ("application/json", _json),
}


@require_GET
@project_page()
def report(request: HttpRequest, project: Project, session_replay_id: str, suffix: str) -> HttpResponse:
    """The same facts as the page."""
    media_type, write = _FILES[suffix]
    text = write(session_report(_found(project, session_replay_id)))
    return shown_file(text, media_type, f"{session_replay_id}.{suffix}")


def _found(project: Project, session_replay_id: str) -> SessionReplay:
    found = session_replay_by_id(project, session_replay_id)
    if found is None:
        raise Http404
    return found
