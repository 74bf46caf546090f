"""What a run says while it goes on, and once nobody waits for its spans any more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_GET

from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Project, Run
from sessions_app.queries.trace_facts import TraceFacts, has_topmost_span, trace_facts
from sessions_app.web.access import project_page
from sessions_app.web.live import live_part_of
from sessions_app.web.run_pages import place_of, session_of, whole_number

QUIET = timedelta(minutes=5)
ArrivalState = Literal["arriving", "incomplete", "complete"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """How far a run has come."""

    state: ArrivalState
    pieces: int
    unit: Literal["span", "step"]
    """What its pieces are: spans, or the steps of a record that is posted again as it grows."""
    newest_at: datetime | None = None
    """When the last step of a run that goes on began or ended."""
    has_topmost: bool = True
    """Whether the topmost span is there; then it may still not have ended."""
    is_behind: bool = False
    """Whether more has come than the run was made of."""
    problem: str | None = None
    """Why the newest spans are not in the run."""

    @property
    def is_quiet(self) -> bool:
        """Whether a run that goes on has told of nothing for so long that somebody should look."""
        return self.newest_at is not None and timezone.now() - self.newest_at > QUIET


def arrival_of(run: Run, facts: TraceFacts | None) -> Arrival:
    """Looks at steps only where the run has no end."""
    trace = getattr(run, "trace", None)
    newest = newest_moment(run.steps) if run.status == "running" else None
    if facts is None or trace is None:
        state: ArrivalState = "arriving" if run.status == "running" else "complete"
        return Arrival(state=state, pieces=run.step_count, unit="step", newest_at=newest)
    spans = facts.spans or 0
    if run.status not in ("running", "cut_off"):
        return Arrival(state="complete", pieces=spans, unit="span", problem=trace.problem_words)
    has_topmost = has_topmost_span(run, facts)
    return Arrival(
        state="arriving" if run.status == "running" else "complete" if has_topmost else "incomplete",
        pieces=spans,
        unit="span",
        newest_at=newest,
        has_topmost=has_topmost,
        is_behind=trace.batches_assembled < trace.batches_received,
        problem=trace.problem_words,
    )


def newest_moment(steps: tuple[StepSummary, ...]) -> datetime | None:
    """The latest that the steps tell of; a step without a duration has only begun."""
    begun = ((step.started_at, step.duration_ms or 0) for step in steps if step.started_at is not None)
    return max((start + timedelta(milliseconds=length) for start, length in begun), default=None)


@require_GET
@project_page()
def arriving(request: HttpRequest, project: Project, session_id: str) -> HttpResponseBase:
    """The line above the steps, asked for again and again until the run has ended."""
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    arrival = arrival_of(place.run, trace_facts(place.run))
    context = arriving_context(request, project, place.run, arrival)
    # The words "12 s ago" count on in the browser: they are no news.
    return live_part_of(request, "sessions/_arriving.html", context, (arrival, arrival.is_quiet, context["newer"]))


def arriving_context(request: HttpRequest, project: Project, run: Run, arrival: Arrival) -> dict[str, Any]:
    """`seen` is how many pieces the page was made of; what came since waits behind a link."""
    seen = whole_number(request.GET.get("seen"), arrival.pieces)
    return {
        "project": project,
        "run": run,
        "session_id": run.session.session_id,
        "arrival": arrival,
        "seen": seen,
        "newer": max(arrival.pieces - seen, 0),
        "was_polled": "seen" in request.GET,
    }
