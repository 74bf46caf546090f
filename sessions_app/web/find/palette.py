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
"""Sessions that are offered; what is typed narrows them."""
_READ = 5 * RECENT
"""Runs that are read for them: a conversation holds many."""
_HELP = (("Keyboard shortcuts", "me", "#keys-list"), ("Preferences", "me", ""))


@require_GET
@project_page()
def palette(request: HttpRequest, project: Project) -> HttpResponse:
    """Asked for once the box has the focus; actions of the page are added there (static/js/palette.js)."""
    pages = [*((words, name, key) for _, words, name, key in SECTIONS), *((words, name, "") for words, name in _MORE)]
    listed = reverse("sessions", args=[project.slug])
    saved = SavedQuery.objects.filter(project=project).order_by("name")
    groups = [
        ("Go to", [(words, reverse(name, args=[project.slug]), key) for words, name, key in pages]),
        ("Saved queries", [(query.name, f"{listed}{query.address}", "") for query in saved]),
        ("Recent sessions", [(_words(run), run_address(run, project), "") for run in _recent(project)]),
        ("Help", [(words, f"{reverse(name)}{part}", "") for words, name, part in _HELP]),
    ]
    response = render(request, "find/_palette.html", {"groups": [group for group in groups if group[1]]})
    response.headers["Cache-Control"] = "private, max-age=60"
    return response


def _recent(project: Project) -> list[Run]:
    """Of each session the newest run that no other run called."""
    runs = Run.objects.filter(project=project, origin="recorded", parent_run_id=None)
    read = runs.select_related("session").only(*RUN_FIELDS).order_by("-pk")[:_READ]
    newest: dict[int, Run] = {}
    for run in read:
        newest.setdefault(run.session_id, run)
    return list(newest.values())[:RECENT]


def _words(run: Run) -> str:
    """By either of its ids."""
    ids = dict.fromkeys([run.session.session_id, run.run_id])
    return f"{' '.join(ids)} {run.input_preview or ''}"
