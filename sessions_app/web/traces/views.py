"""The raw view of a run that came as spans, and the page of a trace of which no run could be made."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.spans.span import Span
from sessions_app.models import Project, Run, Trace
from sessions_app.queries.access import SEES_RAW
from sessions_app.queries.trace_facts import unread_traces, waiting_traces
from sessions_app.services.trace_runs import make_asked_runs, spans_of
from sessions_app.web.access import project_page
from sessions_app.web.downloads import attachment
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.run_pages import whole_number
from sessions_app.web.traces.span_details import resources_of, shown_span
from sessions_app.web.traces.span_tree import in_tree_order, span_page
from sessions_app.web.traces.spans_json import logs_json, spans_json, value_text

NEWEST, ALL = 5, 200
"""Unread traces in the foot of the list, and on their own page."""
MOST_WAITING = 1_000


@require_GET
@project_page(SEES_RAW)
def trace(request: HttpRequest, project: Project, trace_id: str) -> HttpResponse:
    make_asked_runs([project.pk], [_spelled(trace_id)])
    found = _trace(project, trace_id)
    namesake = Run.objects.filter(project=project, run_id=found.trace_id).select_related("session").first()
    context = {"project": project, "section": "sessions", "q_raw": "?", "run": found.run, "namesake": namesake}
    return render(request, "traces/trace.html", context | spans_context(request, found))


@require_GET
@project_page()
def unread(request: HtmxHttpRequest, project: Project) -> HttpResponse:
    """Traces without a run: the foot of the list of sessions asks for them, and has no query of its own."""
    is_part = bool(request.htmx)
    found = unread_traces(project, NEWEST if is_part else ALL)
    template = "traces/_unread.html" if is_part else "traces/unread.html"
    waiting = {"waiting": waiting_traces(project, MOST_WAITING), "waiting_most": MOST_WAITING}
    response = render(request, template, {"project": project, "section": "sessions", "unread": found, **waiting})
    patch_vary_headers(response, ("HX-Request", "Cookie"))
    return response


@require_GET
@project_page(SEES_RAW)
def spans_file(request: HttpRequest, project: Project, trace_id: str, signal: str) -> HttpResponse:
    """All spans, or the log records that name them, in a form that every tracing tool reads."""
    spans = _spans(_trace(project, trace_id))
    write = spans_json if signal == "spans" else logs_json
    return attachment(write(spans), f"{trace_id}.{signal}.json")


@require_GET
@project_page(SEES_RAW)
def span_value(request: HttpRequest, project: Project, trace_id: str, span_id: str, number: int) -> HttpResponse:
    """One attribute of a span, whole."""
    spans = _spans(_trace(project, trace_id))
    values = next((list(span.attributes.values()) for span in spans if span.span_id == span_id), [])
    if number >= len(values):
        raise Http404
    return attachment(value_text(values[number]), f"{span_id}.{number}.txt")


def spans_context(request: HttpRequest, trace: Trace) -> dict[str, Any]:
    """The tree with one span open; the same number of queries for every trace."""
    try:
        spans = spans_of(trace)
    except StoredBytesMissing as gone:
        return {"trace": trace, "gone": gone.name}
    asked = request.GET.get("span", "").strip().replace("-", "").lower()
    places = in_tree_order(spans)
    page = span_page(places, at=whole_number(request.GET.get("at"), 1), span_id=asked)
    opened = next((place.span for place in places if place.span.span_id == asked), None)
    return {
        "trace": trace,
        "page": page,
        "resources": resources_of(spans),
        "log_count": sum(len(span.logs) for span in spans),
        "opened": shown_span(opened) if opened else None,
        "asked_span": asked,
        "parent_query": urlencode({"span": opened.parent_id}) if opened and _is_there(opened, spans) else "",
    }


def _is_there(span: Span, spans: list[Span]) -> bool:
    return any(other.span_id == span.parent_id for other in spans)


def _spans(trace: Trace) -> list[Span]:
    try:
        return spans_of(trace)
    except StoredBytesMissing:
        raise Http404 from None


def _spelled(trace_id: str) -> str:
    """As ids are stored."""
    return trace_id.replace("-", "").lower()


def _trace(project: Project, trace_id: str) -> Trace:
    traces = Trace.objects.select_related("project", "run__session")
    found = traces.filter(project=project, trace_id=_spelled(trace_id)).first()
    if found is None:
        raise Http404
    return found
