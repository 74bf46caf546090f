"""Where the top box leads beside ids and words: pages of the project, its saved queries, help."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from sessions_app.models import Project, Run, SavedQuery
from sessions_app.queries.find import RUN_FIELDS
from sessions_app.web.access import project_page
from sessions_app.web.frame import SECTIONS
from sessions_app.web.run_pages import run_address

_MORE = (("Failure groups", "failure_groups"),)
RECENT = 20
"""Runs that are offered; what is typed narrows them."""
_HELP = (("Keyboard shortcuts", "me", "#keys-list"), ("Preferences", "me", ""))


@require_GET
@project_page()
def palette(request: HttpRequest, project: Project) -> HttpResponse:
    """Asked for once the box has the focus; actions of the page are added there (static/js/palette.js)."""
    pages = [*((words, name, key) for _, words, name, key in SECTIONS), *((words, name, "") for words, name in _MORE)]
    listed = reverse("sessions", args=[project.slug])
    saved = SavedQuery.objects.filter(project=project).order_by("name")
    runs = Run.objects.filter(project=project, origin="recorded").select_related("session").only(*RUN_FIELDS)
    newest = runs.order_by("-pk")[:RECENT]
    recent = [(f"{run.run_id} {run.input_preview or ''}", run_address(run, project), "") for run in newest]
    groups = [
        ("Go to", [(words, reverse(name, args=[project.slug]), key) for words, name, key in pages]),
        ("Saved queries", [(query.name, f"{listed}{query.address}", "") for query in saved]),
        ("Recent sessions", recent),
        ("Help", [(words, f"{reverse(name)}{part}", "") for words, name, part in _HELP]),
    ]
    response = render(request, "find/_palette.html", {"groups": [group for group in groups if group[1]]})
    response.headers["Cache-Control"] = "private, max-age=60"
    return response
