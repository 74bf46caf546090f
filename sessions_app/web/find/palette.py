"""Where the top box leads beside ids and words: pages of the project, its saved queries, tags and sessions, help."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from sessions_app.models import Project, Run, SavedQuery
from sessions_app.queries.find import RUN_FIELDS
from sessions_app.queries.sessions import session_page
from sessions_app.queries.tags import tags_of
from sessions_app.web.access import project_page
from sessions_app.web.find.views import LONGEST, query_of
from sessions_app.web.frame import SECTIONS
from sessions_app.web.run_pages import run_address
from sessions_app.web.session_list.views import part_for

_MORE = (("Failure groups", "failure_groups"),)
RECENT = 20
"""Sessions that are offered; what is typed narrows them."""
_FIELDS = (*RUN_FIELDS, "failure_group")
_READ = 5 * RECENT
"""Runs that are read for them: a conversation holds many."""
FOUND = 8
"""Sessions that are found by their ids, and as many by their words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    address: str
    words: str = ""
    key: str = ""
    run: Run | None = None
    """Of a session, to show its state."""


Group = tuple[str, list[Line]]
"""A heading, and what stands below it."""
_HELP = (("Keyboard shortcuts", "me", "#keys-list"), ("Preferences", "me", ""))


@require_GET
@project_page()
def palette(request: HttpRequest, project: Project) -> HttpResponse:
    """Asked for once the box has the focus; actions of the page are added there (static/js/palette.js). With `?q=` only
    the sessions that it finds."""
    text = request.GET.get("q", "").strip()[:LONGEST]
    groups = [_sessions(project, _found(project, text))] if text else _groups(project)
    response = render(request, "find/_palette.html", {"groups": [group for group in groups if group[1]]})
    response.headers["Cache-Control"] = "private, max-age=60"
    return response


def _groups(project: Project) -> list[Group]:
    pages = [*((words, name, key) for _, words, name, key in SECTIONS), *((words, name, "") for words, name in _MORE)]
    listed = reverse("sessions", args=[project.slug])
    saved = SavedQuery.objects.filter(project=project).order_by("name")
    return [
        (
            "Go to",
            [Line(words=words, address=reverse(name, args=[project.slug]), key=key) for words, name, key in pages],
        ),
        _sessions(project, _recent(project)),
        ("Saved queries", [Line(words=query.name, address=f"{listed}{query.address}") for query in saved]),
        ("Tags", [Line(words=f"Sessions with tag {tag}", address=_tagged(listed, tag)) for tag in tags_of(project)]),
        ("Help", [Line(words=words, address=f"{reverse(name)}{part}") for words, name, part in _HELP]),
    ]


def _tagged(listed: str, tag: str) -> str:
    return f"{listed}?{urlencode({'q': part_for('tag', tag)})}"


def _sessions(project: Project, runs: list[Run]) -> Group:
    """By either of their ids, and by what they were asked."""
    return "Sessions", [Line(address=run_address(run, project), run=run) for run in runs]


def _found(project: Project, text: str) -> list[Run]:
    """Those whose ids begin with it, then those that hold its words."""
    mine = Run.objects.filter(project=project, origin="recorded").select_related("session").only(*_FIELDS)
    begins = Q(run_id__startswith=text) | Q(session__session_id__startswith=text)
    query = query_of(text)
    in_words = session_page(project, query, limit=FOUND).items if query else []
    runs = [*mine.filter(begins).order_by("-pk")[:FOUND], *(row.run for row in in_words)]
    return list({run.pk: run for run in runs}.values())


def _recent(project: Project) -> list[Run]:
    """Of each session the run that its row in the list shows, of those that were read."""
    runs = Run.objects.filter(project=project, origin="recorded", parent_run_id=None)
    read = runs.select_related("session").only(*_FIELDS).order_by("-pk")[:_READ]
    newest: dict[int, Run] = {}
    for run in read:
        shown = newest.setdefault(run.session_id, run)
        newest[run.session_id] = run if run.failure_group else shown
    return list(newest.values())[:RECENT]
