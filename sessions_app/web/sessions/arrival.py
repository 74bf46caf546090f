"""What a run says while its spans arrive, and once nobody waits for them any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from sessions_app.models import Project, Run
from sessions_app.queries.trace_facts import TraceFacts, has_topmost_span, trace_facts
from sessions_app.web.access import project_page
from sessions_app.web.live import live_part
from sessions_app.web.run_pages import place_of, session_of, whole_number

ArrivalState = Literal["arriving", "incomplete", "complete"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """How far the spans of a run have come."""

    state: ArrivalState
    spans: int | None
    has_topmost: bool = True
    """Whether the topmost span is there; then it may still not have ended."""
    is_behind: bool = False
    """Whether more has come than the run was made of."""
    problem: str | None = None
    """Why the newest spans are not in the run."""


def arrival_of(run: Run, facts: TraceFacts | None) -> Arrival | None:
    """None for a run that did not come as spans. Looks at steps only where the run has no end."""
    trace = getattr(run, "trace", None)
    if facts is None or trace is None:
        return None
    if run.status not in ("running", "cut_off"):
        return Arrival(state="complete", spans=facts.spans, problem=trace.problem_words)
    has_topmost = has_topmost_span(run, facts)
    state: ArrivalState = "arriving" if run.status == "running" else "complete" if has_topmost else "incomplete"
    return Arrival(
        state=state,
        spans=facts.spans,
        has_topmost=has_topmost,
        is_behind=trace.batches_assembled < trace.batches_received,
        problem=trace.problem_words,
    )


@require_GET
@project_page()
def arriving(request: HttpRequest, project: Project, session_id: str) -> HttpResponseBase:
    """The line above the steps, asked for again and again until the run has ended."""
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    arrival = arrival_of(place.run, trace_facts(place.run))
    return live_part(request, "sessions/_arriving.html", arriving_context(request, project, place.run, arrival))


def arriving_context(request: HttpRequest, project: Project, run: Run, arrival: Arrival | None) -> dict[str, Any]:
    """`seen` is how many spans the page was made of; what came since waits behind a link."""
    spans = (arrival.spans if arrival else None) or 0
    seen = whole_number(request.GET.get("seen"), spans)
    return {
        "project": project,
        "run": run,
        "session_id": run.session.session_id,
        "arrival": arrival,
        "seen": seen,
        "newer_spans": max(spans - seen, 0),
        "was_polled": "seen" in request.GET,
    }
