"""The list of sessions."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from sessions_app.core.errors import QueryError
from sessions_app.core.query import EXAMPLES, Query, parse_query
from sessions_app.models import Project, Session
from sessions_app.queries.sessions import Page, count_newer, make_cursor, session_page
from sessions_app.web.access import project_page
from sessions_app.web.live import live_part

QUICK = (
    ("all", ""),
    ("failed", "has:error"),
    ("odd", "has:anomaly"),
    ("replayable", "replay:ready"),
    ("cold", "cold:yes"),
    ("replays", "origin:(replay OR fork)"),
)
"""Filters one click away; each is only a query."""


@require_GET
@project_page()
def project_home(request: HttpRequest, project: Project) -> HttpResponseBase:
    """Where there is nothing to list yet, the way to send something."""
    has_sessions = Session.objects.filter(project=project).exists()
    return redirect("sessions" if has_sessions else "setup", project.slug)


@require_GET
@project_page()
def sessions(request: HttpRequest, project: Project) -> HttpResponseBase:
    text = request.GET.get("q", "").strip()
    frame = {"project": project, "section": "sessions", "q": text, "quick": QUICK, "examples": EXAMPLES}
    try:
        query = parse_query(text)
        if "newer" in request.GET:
            return newer_part(request, project, query, request.GET["newer"])
        page = session_page(project, query, cursor=request.GET.get("cursor"))
    except QueryError as error:
        return render(request, "sessions/list.html", frame | blocked(text, error), status=400)
    return render(request, template_for(request), frame | facts_of(request, project, query, page))


def template_for(request: HttpRequest) -> str:
    return "sessions/_rows.html" if request.headers.get("HX-Target") == "more" else "sessions/list.html"


def newer_part(request: HttpRequest, project: Project, query: Query, cursor: str) -> HttpResponseBase:
    context = {"project": project, "q": request.GET.get("q", ""), "top": cursor}
    return live_part(request, "sessions/_newer.html", context | {"count": count_newer(project, query, cursor)})


def facts_of(request: HttpRequest, project: Project, query: Query, page: Page) -> dict[str, Any]:
    return {
        "page": page,
        "is_first": not request.GET.get("cursor"),
        "top": make_cursor(page.items[0].session) if page.items else "",
        "more": urlencode({"q": request.GET.get("q", ""), "cursor": page.next_cursor or ""}),
        "without": without_each(project, query) if not page.items else [],
        "is_empty_project": not page.items and not Session.objects.filter(project=project).exists(),
        "density": "dense" if request.COOKIES.get("density") == "dense" else "normal",
    }


def without_each(project: Project, query: Query) -> list[dict[str, str]]:
    """An empty list says what leaving out each part of the query would give."""
    offers = []
    for part in query.parts[:6]:
        text = query.without(part)
        try:
            found = session_page(project, parse_query(text), limit=20)
        except QueryError:
            continue
        count = len(found.items)
        words = f"{count}+ sessions" if found.next_cursor else f"{count} session{'' if count == 1 else 's'}"
        offers.append({"part": part, "q": text, "words": words})
    return offers


def blocked(text: str, error: QueryError) -> dict[str, Any]:
    """The query with its wrong part marked, and no rows: rows of another query would mislead."""
    before, part, after = text.partition(error.part) if error.part else (text, "", "")
    return {"error": error.message, "before": before, "part": part, "after": after}
