"""What recorded runs cost together, for the pages that say it."""

from __future__ import annotations

from sessions_app.core.cost_figures import By, CostFigures, Facts, cost_figures
from sessions_app.core.pricing import PriceList
from sessions_app.models import Run
from sessions_app.queries.steps_of_runs import with_steps


def costs_of(runs: list[Run], prices: PriceList, by: By) -> CostFigures[Run]:
    """Two queries."""
    return cost_figures(((run, _facts(run), steps) for run, steps in with_steps(runs)), prices, by)


def _facts(run: Run) -> Facts:
    return Facts(began=min(run.started_at or run.received_at, run.received_at), agent=run.agent_name, model=run.model)
