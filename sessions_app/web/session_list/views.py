"""The list of sessions."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET

from sessions_app.core.errors import QueryError
from sessions_app.core.search.query import EXAMPLES, KEYS, Query, TextValue, parse_query, quoted
from sessions_app.models import Project, SavedQuery, Session
from sessions_app.queries.access import has_role
from sessions_app.queries.failure_groups import told_of_group
from sessions_app.queries.find import near_runs
from sessions_app.queries.find_in_calls import count_in_calls
from sessions_app.queries.seen_values import NEWEST, seen_values
from sessions_app.queries.sessions import (
    PAGE,
    Page,
    Span,
    count_matching,
    count_newer,
    count_without_each,
    make_cursor,
    session_page,
)
from sessions_app.web.access import project_page
from sessions_app.web.clock import shown_zone
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.live import live_part
from sessions_app.web.periods import RANGES
from sessions_app.web.session_list.address import ListAddress
from sessions_app.web.session_list.bulk_views import MOST
from sessions_app.web.session_list.columns import columns_context
from sessions_app.web.session_list.overview import overview_context
from sessions_app.web.session_list.panel import panel_context
from sessions_app.web.session_list.recent_queries import recent_queries, remember_query

QUICK = (
    ("all", ""),
    ("failed", "has:error"),
    ("anomalies", "has:anomaly"),
    ("replayable", "replay:ready"),
    ("cold", "cold:yes"),
    ("replays", "origin:(replay OR fork)"),
)
"""Filters one click away; each is only a query."""

COUNTED = 1000
"""Sessions that are counted; more are many."""

SORTED_BY = ("started", "took", "steps")

PARTS = {"more": "session_list/_rows.html", "peek-body": "session_list/_peek.html"}
"""What is sent alone when only this place of the page is asked for."""


@require_GET
@project_page()
def sessions(request: HtmxHttpRequest, project: Project) -> HttpResponseBase:
    address, now = ListAddress.read(request.GET, shown_zone(request)), timezone.now()
    frame = frame_of(request, project, address, now)
    try:
        address.check()
        query, span = parse_query(address.q), address.span(now)
        response = answer(request, project, frame, query, span, now)
    except QueryError as error:
        response = render(request, "session_list/list.html", frame | blocked(address, error), status=400)
    # A part and the whole page have one address; going back must never find the part.
    patch_vary_headers(response, ("HX-Request", "HX-Target", "Cookie"))
    return response


def answer(
    request: HtmxHttpRequest, project: Project, frame: dict[str, Any], query: Query, span: Span, now: datetime
) -> HttpResponseBase:
    address: ListAddress = frame["address"]
    if "newer" in request.GET:
        return newer_part(request, project, query, span, address)
    if "total" in request.GET:
        count = count_matching(project, query, COUNTED, span=span)
        context = {"count": count, "most": COUNTED, "says_it_for_bulk": frame["may_change"] and count > PAGE}
        context |= {"in_calls": count_in_calls(project, query), "q": address.q, "project": project}
        return render(request, "session_list/_total.html", context)
    if "overview" in request.GET:
        frame |= overview_context(project, address, query, span, now)
        if request.htmx:
            return render(request, "session_list/_overview.html", frame | {"is_part": True})
    part = PARTS.get(request.htmx.target or "")
    frame |= panel_context(project, query, address)
    if part == PARTS["peek-body"]:
        return render(request, part, frame)
    page = session_page(project, query, cursor=address.cursor or None, sort=address.sort, span=span)
    if not part:
        remember_query(request, project, address.q)
    context = frame | facts_of(request, project, address, query, page, span)
    context["group_told"] = told_of_group(project, query)
    return render(request, part or "session_list/list.html", context)


def frame_of(request: HttpRequest, project: Project, address: ListAddress, now: datetime) -> dict[str, Any]:
    """What stands around the rows, whether the query can be understood or not."""
    return {
        "project": project,
        "section": "sessions",
        "address": address,
        "q": address.q,
        "quick": [(words, str(address.top.but(q=text)), address.q == text) for words, text in QUICK],
        "examples": EXAMPLES,
        "ranges": ranges_of(address),
        "range_words": RANGES[address.range][0] if address.range in RANGES else "All time",
        "shared": request.build_absolute_uri(f"{request.path}{address.absolute(now)}".rstrip("?")),
        "saved": list(SavedQuery.objects.filter(project=project).order_by("name")),
        "zone": shown_zone(request),
        "recent": [(text, str(address.top.but(q=text))) for text in recent_queries(request, project)],
        "may_change": has_role(request.user, project, "member"),
        **columns_context(request.COOKIES),
        "all_selected": request.GET.get("select") == "page",
        "form_key": secrets.token_urlsafe(12),
        "most": MOST,
    }


def ranges_of(address: ListAddress) -> list[tuple[str, str, bool]]:
    """Words, address, and whether it is the one in force."""
    plain = address.top.but(since="", until="")
    ways = [(words, str(plain.but(range=name)), address.range == name) for name, (words, _) in RANGES.items()]
    return [*ways, ("All time", str(plain.but(range="")), not address.has_times)]


def newer_part(
    request: HttpRequest, project: Project, query: Query, span: Span, address: ListAddress
) -> HttpResponseBase:
    top = request.GET["newer"]
    context = {
        "project": project,
        "top": top,
        "address": address,
        "same": str(address.top).removeprefix("?"),
        "count": count_newer(project, query, top, span=span),
    }
    return live_part(request, "session_list/_newer.html", context)


def facts_of(
    request: HttpRequest, project: Project, address: ListAddress, query: Query, page: Page, span: Span
) -> dict[str, Any]:
    # Nothing new can stand above the rows when the order or the end of the range says where they end.
    can_grow = address.is_newest_first and not address.until and not address.cursor
    return {
        "page": page,
        "is_first": not address.cursor,
        "top": make_cursor(page.items[0].session) if page.items and can_grow else "",
        "same": str(address.top).removeprefix("?"),
        "more": str(address.but(cursor=page.next_cursor or "", peek="")),
        "peeking": f"{address.alone}&" if str(address.alone) != "?" else "?",
        "sorts": {name: sort_head(address, name) for name in SORTED_BY},
        "without": [] if page.items else without_each(project, query, address, span),
        "counted": COUNTED,
        "near": [] if page.items or address.cursor else near_runs(Project.objects.filter(pk=project.pk), address.q),
        "without_times": str(address.top.but(range="", since="", until="")) if address.has_times else "",
        "is_empty_project": not page.items and not Session.objects.filter(project=project).exists(),
        "density": "dense" if request.COOKIES.get("density") == "dense" else "normal",
    }


def sort_head(address: ListAddress, name: str) -> dict[str, str]:
    """Largest first, then the other way round; `aria` is how the column stands now."""
    down = f"-{name}"
    aria = {down: "descending", name: "ascending"}.get(address.sort, "")
    return {"href": str(address.top.but(sort=name if address.sort == down else down)), "aria": aria}


def without_each(project: Project, query: Query, address: ListAddress, span: Span) -> list[tuple[str, str, int]]:
    """An empty list says what leaving out each part of the query would give."""
    counts = count_without_each(project, query, COUNTED, span=span)
    return [(part, str(address.top.but(q=rest)), count) for part, rest, count in counts]


def blocked(address: ListAddress, error: QueryError) -> dict[str, Any]:
    """Each wrong part with its reason, and no rows: rows of another query would mislead."""
    wrong = (error, *error.others)
    meant = _meant(address.q, wrong)
    rest = "" if meant else _without(address.q, wrong)
    return {
        "wrong": wrong,
        "instead": _offer(address, meant),
        "rest": _offer(address, rest),
        "keys": KEYS,
    }


def _offer(address: ListAddress, text: str) -> dict[str, str] | None:
    return {"text": text, "href": str(address.top.but(q=text))} if text else None


def _without(text: str, wrong: Sequence[QueryError]) -> str:
    for error in wrong:
        text = text.replace(error.part, "", 1)
    return " ".join(text.split())


def _meant(text: str, wrong: Sequence[QueryError]) -> str:
    """The query with each wrong part as it may have been meant, or without it; empty where nothing is known of any."""
    if not any(error.instead for error in wrong):
        return ""
    for error in wrong:
        text = text.replace(error.part, error.instead, 1)
    return " ".join(text.split())


@require_GET
@project_page()
def suggestions(request: HttpRequest, project: Project) -> HttpResponseBase:
    """Parts of queries that this project has values for, asked for once somebody begins to write one."""
    seen = [(part_for(found.key, found.value), found.count) for found in seen_values(project)]
    response = render(request, "session_list/_suggestions.html", {"seen": seen, "newest": NEWEST, "examples": EXAMPLES})
    response.headers["Cache-Control"] = "private, max-age=60"
    return response


def part_for(key: str, value: str) -> str:
    """As a person would write it: with quotes only where the value would be read as something else."""
    plain = f"{key}:{value}"
    try:
        terms = parse_query(plain).terms
    except QueryError:
        return f"{key}:{quoted(value)}"
    is_same = len(terms) == 1 and terms[0].values == (TextValue(text=value),) and terms[0].part == plain
    return plain if is_same else f"{key}:{quoted(value)}"
