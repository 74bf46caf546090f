"""Runs to compare a run with; they are looked for when somebody wants them, and not with each session page."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET

from sessions_app.models import Project
from sessions_app.queries.comparable_runs import comparable_runs, failed_alike
from sessions_app.web.access import project_page
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.run_pages import place_of, session_of


@require_GET
@project_page()
def twins(request: HtmxHttpRequest, project: Project, session_id: str) -> HttpResponse:
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    comparable = [each for each in comparable_runs(place.run) if each.is_alike or not request.htmx]
    context = {
        "project": project,
        "section": "sessions",
        "run": place.run,
        "place": place,
        "back": place.session_address(project).rstrip("?&"),
        "comparable": comparable,
        "is_any_good": any(each.is_good for each in comparable),
        "failed_alike": (alike := failed_alike(place.run).count()),
        "more": alike - sum(not each.is_good for each in comparable),
    }
    response = render(request, "diff/_twins.html" if request.htmx else "diff/twins.html", context)
    patch_vary_headers(response, ("HX-Request", "Cookie"))
    return response
