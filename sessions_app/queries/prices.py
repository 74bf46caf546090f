"""The prices of models that a project keeps."""

from __future__ import annotations

from sessions_app.core.errors import StepMissing
from sessions_app.core.pricing import Cost, Price, PriceList
from sessions_app.models import ModelPrice, Project, Run


def prices_of(project: Project) -> list[ModelPrice]:
    """By name, the newest first."""
    return list(ModelPrice.objects.filter(project=project).order_by("model", "-since"))


def price_list(project: Project) -> PriceList:
    """One query."""
    return list_of(prices_of(project))


def list_of(rows: list[ModelPrice]) -> PriceList:
    return PriceList(
        Price(model=row.model, since=row.since, input_price=row.input_price, output_price=row.output_price)
        for row in rows
    )


def cost_of_run(run: Run, prices: PriceList) -> Cost | None:
    """None where its steps are damaged, or no model was called."""
    try:
        cost = prices.cost_of_run(run.steps, run.model, (run.started_at or run.received_at).date())
    except StepMissing:
        return None
    return cost if cost.priced or cost.unpriced else None
