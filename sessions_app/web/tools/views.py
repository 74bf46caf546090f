"""Tools over runs: which were slow, failed, were made again, or answer differently now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import sqrt

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from sessions_app.core.search.query import quoted
from sessions_app.core.step_summary import StepSummary
from sessions_app.core.tool_figures import Call, ToolFigures, tool_figures
from sessions_app.models import Project, Run
from sessions_app.queries.agents_seen import agents_seen
from sessions_app.queries.failure_groups import per_day
from sessions_app.queries.steps_of_runs import MOST_RUNS, recorded_runs, with_steps
from sessions_app.web.access import project_page
from sessions_app.web.periods import Period

SHOWN = 50
"""Calls, or groups of them."""
_CONFIDENCE = 1.96
"""Standard deviations: 95 %."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRow:
    """One tool in numbers; each leads to the calls that it counts."""

    name: str
    runs: int
    calls: int
    failed: int
    retries: int
    p50: float | None
    p95: float | None
    drifted: int
    days: tuple[int, ...]
    """How many failed on each of the last days, today last."""
    sessions: str
    """The list of sessions whose runs called it."""
    address: str
    """Of its calls on this page; `show` is still to be named."""

    @property
    def failed_percent(self) -> float:
        return 100 * self.failed / self.calls

    @property
    def failing(self) -> float:
        """The share that fails at least, as far as so many calls show (the lower bound of Wilson's interval): 3 of 3
        weigh more than 1 of 100, and 1 of 1 less than 6 of 6."""
        n, share, z2 = self.calls, self.failed / self.calls, _CONFIDENCE**2
        spread = _CONFIDENCE * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
        return (share + z2 / (2 * n) - spread) / (1 + z2 / n) if self.failed else 0.0


@require_GET
@project_page()
def tools(request: HttpRequest, project: Project) -> HttpResponse:
    """Five queries, whatever is stored."""
    period, now = Period.read(request.GET), timezone.now()
    sort = request.GET.get("sort", "") if request.GET.get("sort") in SORTS else "errors"
    runs = recorded_runs(project, period.span(now), period.agent)
    figures = tool_figures((run, _with_broken_answers(run, steps)) for run, steps in with_steps(runs[:MOST_RUNS]))
    rows = sorted((_row(tool, period, sort, now) for tool in figures), key=SORTS[sort])
    name, show = request.GET.get("tool", ""), request.GET.get("show", "")
    chosen = next((tool for tool in figures if tool.name == name), None)
    context = {
        "project": project,
        "section": "tools",
        **period.choices(agents_seen(project), sort=_named(sort)),
        "rows": rows,
        "worst": max((row for row in rows if row.failed), key=lambda row: (row.failing, row.calls), default=None),
        "slowest": min((row for row in rows if row.p95), key=SORTS["p95"], default=None),
        "most_in_a_day": max((day for row in rows for day in row.days), default=0),
        "sort": sort,
        "sorts": {name: period.address(sort=_named(name)) for name in SORTS},
        "has_retries": any(row.retries for row in rows),
        "has_drift": any(row.drifted for row in rows),
        "runs": min(len(runs), MOST_RUNS),
        "is_cut": len(runs) > MOST_RUNS,
        "chosen": name,
        "show": show if show in SHOWS else "failed",
        "found": _found(chosen, show) if chosen else [],
        "shown": SHOWN,
        "shown_slice": f":{SHOWN}",
        "shows": SHOWS.items(),
        "chosen_address": period.address(tool=name, sort=_named(sort)),
    }
    return render(request, "tools/tools.html", context)


SORTS: dict[str, Callable[[ToolRow], tuple[float, ...]]] = {
    "errors": lambda row: (-row.failed, -row.failed_percent, -row.calls),
    "calls": lambda row: (-row.calls,),
    "p95": lambda row: (-(row.p95 or 0), -row.calls),
    "drift": lambda row: (-row.drifted, -row.calls),
}


def _named(sort: str) -> str:
    """In addresses; the order that is there without being asked for is left out."""
    return "" if sort == "errors" else sort


def _with_broken_answers(run: Run, steps: Sequence[StepSummary]) -> Sequence[StepSummary]:
    """What failure groups count as the tool's fault counts here too, although the call itself came back."""
    broken = {step for each in run.anomalies if each["code"] in _BROKEN for step in each.get("steps") or ()}
    return (
        [msgspec.structs.replace(step, tells_failure=True) if step.index in broken else step for step in steps]
        if broken
        else steps
    )


_BROKEN = ("cut_off_json", "refusal_unsaid")


def _row(tool: ToolFigures[Run], period: Period, sort: str, now: datetime) -> ToolRow:
    query = f"tool:{quoted(tool.name)}" + (f" agent:{quoted(period.agent)}" if period.agent else "")
    parts = {"q": query, "range": period.range}
    return ToolRow(
        name=tool.name,
        runs=tool.runs,
        calls=len(tool.calls),
        failed=len(tool.failed),
        retries=len(tool.retries),
        p50=tool.percentile(50),
        p95=tool.percentile(95),
        drifted=len(tool.drifted),
        days=per_day((_at(call.run) for call in tool.failed), now),
        sessions=urlencode({key: value for key, value in parts.items() if value}),
        address=period.address(tool=tool.name, sort=_named(sort)),
    )


def _at(run: Run) -> datetime:
    """A clock that is ahead makes no run later than its arrival."""
    return min(run.started_at or run.received_at, run.received_at)


SHOWS = {"failed": "errors", "retries": "retries", "slow": "slowest", "drift": "drift"}


def _found(tool: ToolFigures[Run], show: str) -> list[list[Call[Run]]]:
    """Groups of calls: each stands alone but for those whose answer changed."""
    if show == "drift":
        return tool.drifted
    calls = {"retries": tool.retries, "slow": tool.slowest[:SHOWN]}.get(show, tool.failed)
    return [[call] for call in calls]
