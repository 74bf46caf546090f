"""The forks of a run as a table, those of its forks as a tree too, and what else was replayed of it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import ReplayMode
from sessions_app.queries.access import has_role
from sessions_app.queries.forks import fork_rows
from sessions_app.queries.run_lists import OF_CONTENT
from sessions_app.web.access import project_page
from sessions_app.web.forks.tree import as_tree, shown_forks, three_columns
from sessions_app.web.replays.stops import run_page
from sessions_app.web.run_pages import place_of, run_address, session_of

ATTEMPTS = 20


@require_GET
@project_page()
def forks(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    """`?with=` once or twice leads to the run beside those runs."""
    run = place_of(session_of(project, session_id), request.GET.get("run", "")).run
    if picked := [run_id for run_id in request.GET.getlist("with") if run_id]:
        return _beside(request, project, run, picked)
    return render(request, "forks/tree.html", _context(request, project, run))


def _context(request: HttpRequest, project: Project, run: Run) -> dict[str, Any]:
    rows, attempts = fork_rows(run), _attempts(run)
    shown = shown_forks(project, rows)
    return {
        "project": project,
        "section": "sessions",
        "run": run,
        "run_calls": run.model_call_count + run.tool_call_count,
        "session_id": run.session.session_id,
        "run_link": run_address(run, project),
        "fork_link": run_page("fork", project, run),
        "forks": shown,
        "tree": as_tree(shown),
        "has_forks_of_forks": any(fork.row.depth > 1 for fork in shown),
        "attempts": attempts,
        "may_change": has_role(request.user, project, "member"),
    }


def _attempts(run: Run) -> list[Replay]:
    """Replays that changed nothing and ran no code of the team, newest first."""
    found = run.replays.filter(mode=ReplayMode.RECORDING).select_related("requested_by", "produced_run", "content")
    return list(found.defer(*OF_CONTENT).order_by("-number")[:ATTEMPTS])


def _beside(request: HttpRequest, project: Project, run: Run, picked: list[str]) -> HttpResponse:
    if len(picked) > 2:
        messages.warning(request, "Three columns hold the run and two others: tick at most two.")
        return redirect(run_page("forks", project, run))
    if len(picked) == 2:
        return redirect(three_columns(project, run.run_id, *picked))
    return redirect(reverse("diff", args=[project.slug, run.run_id, picked[0]]))
