"""What the runs of a project cost, in time, by agent and by model."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from sessions_app.core.cost_figures import By, CostFigures
from sessions_app.models import Project, Run
from sessions_app.queries.access import has_role
from sessions_app.queries.agents_seen import agents_seen
from sessions_app.queries.costs import costs_of
from sessions_app.queries.prices import price_list
from sessions_app.queries.steps_of_runs import MOST_RUNS, recorded_runs
from sessions_app.services.prices import list_price
from sessions_app.web.access import project_page
from sessions_app.web.costs.chart import Series, colours_of, cost_chart
from sessions_app.web.periods import Period

SHOWN = 20
"""Of models, agents and runs: the most expensive."""


@require_GET
@project_page()
def costs(request: HttpRequest, project: Project) -> HttpResponse:
    """Six queries, whatever is stored."""
    period, now = Period.read(request.GET), timezone.now()
    by: By = "agent" if request.GET.get("by") == "agent" else "model"
    prices, may_price = price_list(project), has_role(request.user, project, "admin")
    runs = recorded_runs(project, period.span(now), period.agent)
    figures = costs_of(runs[:MOST_RUNS], prices, by)
    context = {
        "project": project,
        "section": "costs",
        **period.choices(agents_seen(project), by=by if by == "agent" else ""),
        "by": by,
        "ways": [(way, period.address(by=way if way == "agent" else ""), way == by) for way in ("model", "agent")],
        "figures": figures,
        "chart": cost_chart(figures, now),
        "series": (series := _series(figures, is_offered=may_price and by == "model")),
        "listed": [each for each in series[:SHOWN] if each.list_price],
        "dearest": [each for each in figures.dearest[:SHOWN] if each.cost.calls],
        "shown": f":{SHOWN}",
        "more_than": SHOWN,
        "runs": min(len(runs), MOST_RUNS),
        "is_cut": len(runs) > MOST_RUNS,
        "may_price": may_price,
    }
    return render(request, "costs/costs.html", context)


def _series(figures: CostFigures[Run], *, is_offered: bool) -> list[Series]:
    """`is_offered` says whether list prices of the models without one are."""
    costs, colours = ((name, figures.of_names[name]) for name in figures.names), colours_of(figures)
    return [
        Series(
            name=name,
            colour=colours[name],
            cost=cost,
            percent=100 * figures.share(cost),
            list_price=list_price(name) if is_offered and name and cost.without_price and place < SHOWN else None,
        )
        for place, (name, cost) in enumerate(costs)
    ]
