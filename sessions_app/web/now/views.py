"""The page that people keep open: what needs somebody now."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET

from sessions_app.core.pricing import Cost
from sessions_app.models import Project, Run
from sessions_app.queries.failing_now import failing_now
from sessions_app.queries.now import (
    STALLED,
    finished_replays,
    loops,
    open_counts,
    open_replays,
    pulse,
    repeats_in_words,
    thawed,
)
from sessions_app.queries.prices import cost_of_run, price_list
from sessions_app.queries.projects import has_sessions
from sessions_app.web.access import project_page
from sessions_app.web.goldens.standing import standing_of
from sessions_app.web.now.replay_lines import finished_lines
from sessions_app.web.sessions.arrival import arrival_of

_AWAY = timedelta(minutes=30)
"""Whoever comes back later than this begins a new visit."""


@require_GET
@project_page()
def now(request: HttpRequest, project: Project) -> HttpResponseBase:
    """A fixed number of queries. Where nothing arrived yet there is nothing to see: the way to send something."""
    if not has_sessions(project):
        return redirect("setup", project.slug)
    moment = timezone.now()
    since = _last_visit(request, project, moment)
    unfinished = open_replays(project)
    context = {
        "project": project,
        "section": "now",
        "failing": failing_now(project, moment),
        "standing": standing_of(project),
        "waiting": [replay for replay in unfinished if replay.is_over],
        "open": [replay for replay in unfinished if not replay.is_over],
        "open_counts": open_counts(project),
        "finished": finished_lines(finished_replays(project, since)),
        "since": since,
        "loops": _with_costs(project, moment),
        "thawed": thawed(project),
        "pulse": (beat := pulse(project, moment)),
        "quiet": _quiet(project) if beat.running else [],
        "is_stalled": beat.oldest_queued is not None and moment - beat.oldest_queued > STALLED,
    }
    return render(request, "now/now.html", context)


def _last_visit(request: HttpRequest, project: Project, moment: datetime) -> datetime:
    """When the person's last visit to this page ended; a day ago at the first one. Looking again within a visit
    changes nothing, so that a reload does not empty the list of what is over."""
    visits: dict[str, Any] = request.session.get("now", {})
    seen = visits.get(project.slug)
    if seen is None:
        since, last = moment - timedelta(days=1), moment
    else:
        since, last = (datetime.fromisoformat(text) for text in seen)
    if moment - last > _AWAY:
        since = last
    request.session["now"] = visits | {project.slug: [since.isoformat(), moment.isoformat()]}
    return since


LOOKED_AT = 20
"""Runs that go on."""


def _quiet(project: Project) -> list[tuple[Run, datetime]]:
    """Those that go on and have told of nothing for so long that somebody should look, with when they last did."""
    runs = Run.objects.filter(project=project, origin="recorded", status="running").defer("search")
    found = [
        (run, arrival_of(run, None)) for run in runs.select_related("session", "content").order_by("pk")[:LOOKED_AT]
    ]
    return [(run, arrival.newest_at) for run, arrival in found if arrival.is_quiet and arrival.newest_at]


def _with_costs(project: Project, moment: datetime) -> list[tuple[Run, str, Cost | None]]:
    prices = price_list(project)
    return [(run, repeats_in_words(run), cost_of_run(run, prices)) for run in loops(project, moment)]
