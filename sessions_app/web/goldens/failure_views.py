"""Runs that failed alike: a row for each group, a column for each agent that its representative was replayed with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from sessions_app.core.errors import NotReplayable, QueryError
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.search.query import parse_query, quoted
from sessions_app.models import Project
from sessions_app.queries.access import has_role
from sessions_app.queries.agents_seen import agents_seen
from sessions_app.queries.failure_groups import (
    MOST_SHOWN,
    ORDERS,
    FailureGroup,
    attempts_at,
    failure_groups,
    failures_in,
)
from sessions_app.queries.projects import has_sessions
from sessions_app.queries.replays import queue_of
from sessions_app.services.failure_replays import replay_representatives
from sessions_app.services.replays import registered_agents
from sessions_app.web.access import project_page
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.live import live_part_of
from sessions_app.web.periods import Period


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """Which groups, and in which order; all of it stands in the address."""

    period: Period
    query: str
    sort: str

    @classmethod
    def read(cls, data: QueryDict) -> Asked:
        sort = data.get("sort", "")
        return cls(period=Period.read(data), query=data.get("q", ""), sort=sort if sort in ORDERS else "last")

    @property
    def more(self) -> dict[str, str]:
        """Of the address, beside the period; the order that is there without being asked for is left out."""
        return {"q": self.query, "sort": "" if self.sort == "last" else self.sort}

    @property
    def address(self) -> str:
        return self.period.address(**self.more)

    def groups(self, project: Project) -> list[FailureGroup]:
        """Raises `QueryError`."""
        of_agent = f" agent:{quoted(self.period.agent)}" if self.period.agent else ""
        now = timezone.now()
        return failure_groups(
            project, parse_query(self.query + of_agent), now, span=self.period.span(now), order=self.sort
        )


@require_GET
@project_page()
def failures(request: HtmxHttpRequest, project: Project) -> HttpResponseBase:
    """While one of the replays is open the table asks again."""
    asked, problem = Asked.read(request.GET), ""
    try:
        groups = asked.groups(project)
    except QueryError as error:
        groups, problem = [], str(error)
    table = _table(project, groups)
    context = table | {
        "project": project,
        "section": "now",
        "asked": asked,
        "sorts": {name: asked.period.address(**replace(asked, sort=name).more) for name in ORDERS},
        "sort": asked.sort,
        "problem": problem,
        "may_change": has_role(request.user, project, "member"),
        "has_sessions": partial(has_sessions, project),
    }
    if request.htmx:
        return live_part_of(request, "goldens/_failures.html", context, table["seen"])
    failures = failures_in(groups)
    context |= {
        **asked.period.choices(agents_seen(project), **asked.more),
        "with_agents": registered_agents(),
        "failures": failures[0],
        "today": failures[1],
        "most": MOST_SHOWN,
    }
    return render(request, "goldens/failures.html", context, status=400 if problem else 200)


def _table(project: Project, groups: list[FailureGroup]) -> dict[str, Any]:
    found = attempts_at(groups)
    attempts = [each for of_one in found.values() for each in of_one.values()]
    columns = sorted({each.agent for each in attempts})
    rows = [(group, [found[group.representative.pk].get(agent) for agent in columns]) for group in groups]
    is_live = any(each.outcome is None for each in attempts)
    queue = queue_of(project) if is_live else None
    seen = [queue, *((each.replay.pk, each.replay.state) for each in attempts)]
    most = max((day for group in groups for day in group.days), default=0)
    return {"rows": rows, "columns": columns, "is_live": is_live, "queue": queue, "seen": seen, "most_in_a_day": most}


@require_POST
@project_page("member")
def replay_failures(request: HttpRequest, project: Project) -> HttpResponse:
    """The groups that are ticked, or all of them, with each agent that is ticked."""
    asked, ticked = Asked.read(request.GET), request.POST.getlist("group")
    try:
        replay_representatives(
            [group for group in asked.groups(project) if not ticked or group.representative.run_id in ticked],
            request.POST.getlist("agent"),
            mode=request.POST.get("mode", "code_and_tools"),
            user=request.user,  # type: ignore[arg-type]  # signed in: project_page
        )
    except (ForkError, NotReplayable, QueryError) as problem:
        messages.warning(request, str(problem))
    return redirect(f"{reverse('failure_groups', args=[project.slug])}{asked.address}")
