"""Cold cases: the board, marking one with a reason, and taking the mark back."""

from __future__ import annotations

import secrets
from functools import partial

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from sessions_app.core.errors import RecordError
from sessions_app.models import Project, Run
from sessions_app.queries.access import has_role
from sessions_app.queries.cold_cases import cold_board
from sessions_app.queries.projects import has_sessions
from sessions_app.queries.turns import in_turn
from sessions_app.services.cold_cases import mark_cold
from sessions_app.services.cold_cases import take_back as take_back_mark
from sessions_app.web.access import project_page


@require_GET
@project_page()
def cold(request: HttpRequest, project: Project) -> HttpResponse:
    context = {
        "project": project,
        "section": "cold",
        "board": cold_board(project),
        "has_sessions": partial(has_sessions, project),
        "may_change": has_role(request.user, project, "member"),
        "form_key": secrets.token_urlsafe(12),
    }
    return render(request, "cold/cold.html", context)


@require_POST
@project_page("member")
def mark(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    assert request.user.is_authenticated
    run = run_of(request, project, session_id)
    try:
        mark_cold(run=run, reason=request.POST.get("reason", ""), user=request.user)
    except RecordError as error:
        facts = {
            "project": project,
            "section": "cold",
            "run": run,
            "session_id": session_id,
            "error": error.message,
            "reason": request.POST.get("reason", ""),
        }
        return render(request, "cold/mark.html", facts, status=422)
    messages.info(request, f"{run.run_id} is marked cold.")
    return redirect(back_to(project, session_id, run))


@require_POST
@project_page("member")
def take_back(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    run = run_of(request, project, session_id)
    take_back_mark(run=run)
    messages.info(request, f"{run.run_id} is no longer a cold case.")
    return redirect(back_to(project, session_id, run))


def run_of(request: HttpRequest, project: Project, session_id: str) -> Run:
    """The run named in the form; in a session of one run it need not be named."""
    runs = Run.objects.filter(project=project, session__session_id=session_id)
    wanted = request.POST.get("run")
    asked = runs.filter(run_id=wanted) if wanted else runs.filter(origin="recorded").order_by(*in_turn())
    found = asked.first()
    if found is None:
        raise Http404
    return found


def back_to(project: Project, session_id: str, run: Run) -> str:
    address = reverse("session", args=[project.slug, session_id])
    return f"{address}?{urlencode({'run': run.run_id})}"
