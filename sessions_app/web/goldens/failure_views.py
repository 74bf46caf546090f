"""Runs that failed alike: a row for each group, a column for each agent that its representative was replayed with."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from sessions_app.core.errors import NotReplayable, QueryError
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.search.query import parse_query
from sessions_app.models import Project
from sessions_app.queries.access import has_role
from sessions_app.queries.failure_groups import FailureGroup, attempts_at, failure_groups
from sessions_app.queries.replays import queue_of
from sessions_app.services.failure_replays import replay_representatives
from sessions_app.services.replays import registered_agents
from sessions_app.web.access import project_page
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.live import live_part_of


@require_GET
@project_page()
def failures(request: HtmxHttpRequest, project: Project) -> HttpResponseBase:
    """While one of the replays is open the table asks again."""
    query, problem = request.GET.get("q", ""), ""
    try:
        groups = failure_groups(project, parse_query(query), timezone.now())
    except QueryError as error:
        groups, problem = [], str(error)
    table = _table(project, groups)
    context = table | {
        "project": project,
        "section": "goldens",
        "query": query,
        "problem": problem,
        "agents": registered_agents(),
        "may_change": has_role(request.user, project, "member"),
    }
    if request.htmx:
        return live_part_of(request, "goldens/_failures.html", context, table["seen"])
    return render(request, "goldens/failures.html", context, status=400 if problem else 200)


def _table(project: Project, groups: list[FailureGroup]) -> dict[str, Any]:
    found = attempts_at(groups)
    attempts = [each for of_one in found.values() for each in of_one.values()]
    columns = sorted({each.agent for each in attempts})
    rows = [(group, [found[group.representative.pk].get(agent) for agent in columns]) for group in groups]
    is_live = any(each.outcome is None for each in attempts)
    queue = queue_of(project) if is_live else None
    seen = [queue, *((each.replay.pk, each.replay.state) for each in attempts)]
    return {"rows": rows, "columns": columns, "is_live": is_live, "queue": queue, "seen": seen}


@require_POST
@project_page("member")
def replay_failures(request: HttpRequest, project: Project) -> HttpResponse:
    """The groups that are ticked, or all of them, with each agent that is ticked."""
    query, ticked = request.POST.get("q", ""), request.POST.getlist("group")
    try:
        groups = failure_groups(project, parse_query(query), timezone.now())
        replay_representatives(
            [group for group in groups if not ticked or group.representative.run_id in ticked],
            request.POST.getlist("agent"),
            mode=request.POST.get("mode", "code_and_tools"),
            user=request.user,  # type: ignore[arg-type]  # signed in: project_page
        )
    except (ForkError, NotReplayable, QueryError) as problem:
        messages.warning(request, str(problem))
    address = reverse("failure_groups", args=[project.slug])
    return redirect(f"{address}?{urlencode({'q': query})}" if query else address)
