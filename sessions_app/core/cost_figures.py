"""What many runs cost together: in all, in time, and by agent or model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Generic, Literal, NamedTuple, TypeVar

from sessions_app.core.pricing import NOTHING, Cost, PriceList, bare_model
from sessions_app.core.step_summary import StepSummary


class Facts(NamedTuple):
    """What has to be known of a run beside its steps."""

    began: datetime
    agent: str | None
    model: str | None
    """For calls that name none."""


RunT = TypeVar("RunT")


class RunCost(NamedTuple, Generic[RunT]):
    """What a run cost, and the models of its calls, the most expensive first."""

    run: RunT
    cost: Cost
    models: tuple[str | None, ...]


By = Literal["agent", "model"]


@dataclass(slots=True)
class CostFigures(Generic[RunT]):
    """Names are None for what was not captured."""

    total: Cost = NOTHING
    of_runs: list[RunCost[RunT]] = field(default_factory=list)
    of_names: dict[str | None, Cost] = field(default_factory=lambda: defaultdict(lambda: NOTHING))
    in_time: dict[tuple[datetime, str | None], Cost] = field(default_factory=lambda: defaultdict(lambda: NOTHING))
    unpriced_models: set[str] = field(default_factory=set)

    @property
    def names(self) -> list[str | None]:
        """The most expensive first; tokens without a price count as much as the average of those with one."""
        return sorted(self.of_names, key=lambda name: (*self._dearest_first(self.of_names[name]), name or ""))

    @property
    def dearest(self) -> list[RunCost[RunT]]:
        """Runs in the same order."""
        return sorted(self.of_runs, key=lambda each: self._dearest_first(each.cost))

    def _dearest_first(self, cost: Cost) -> tuple[Decimal, Decimal, int]:
        """Were they left out, the run with the most tokens could be missing among the most expensive ones."""
        priced_tokens = self.total.tokens - self.total.unpriced_tokens
        estimated = self.total.dollars * cost.unpriced_tokens / (priced_tokens or 1)
        return -cost.dollars - estimated, -cost.dollars, -cost.tokens

    def amount(self, cost: Cost) -> Decimal:
        """What is compared: dollars, and where nothing has a price, tokens."""
        return cost.dollars if self.total.is_known else Decimal(cost.tokens)

    def share(self, cost: Cost) -> Decimal:
        """Of 1: of the dollars where every model has a price, else of the tokens, which leave none of them out."""
        if self.total.is_known and not self.total.unpriced_tokens:
            return cost.dollars / (self.total.dollars or 1)
        return Decimal(cost.tokens) / (self.total.tokens or 1)


def _names(costs: Mapping[str | None, Cost]) -> list[str | None]:
    return sorted(costs, key=lambda name: (-costs[name].dollars, -costs[name].tokens, name or ""))


def cost_figures(
    runs: Iterable[tuple[RunT, Facts, Sequence[StepSummary]]], prices: PriceList, by: By
) -> CostFigures[RunT]:
    """Linear in the steps."""
    figures: CostFigures[RunT] = CostFigures()
    for run, facts, steps in runs:
        of_models = _by_model(facts, steps, prices)
        for model, cost in of_models.items():
            name = model if by == "model" else facts.agent
            figures.of_names[name] += cost
            figures.in_time[facts.began, name] += cost
            if model is not None and cost.without_price:
                figures.unpriced_models.add(model)
        whole = sum(of_models.values(), start=NOTHING)
        figures.of_runs.append(RunCost(run, whole, tuple(_names(of_models))))
        figures.total += whole
    return figures


def _by_model(facts: Facts, steps: Sequence[StepSummary], prices: PriceList) -> dict[str | None, Cost]:
    costs: dict[str | None, Cost] = {}
    for step in steps:
        if step.kind == "model":
            named = step.model or facts.model
            model = bare_model(named) if named else None
            costs[model] = costs.get(model, NOTHING) + prices.cost_of(step, facts.model, facts.began.date())
    return costs


_LENGTHS = (timedelta(hours=1), timedelta(hours=6), timedelta(days=1), timedelta(days=7), timedelta(days=30))
MOST_BARS = 60


def bar_length(first: datetime, last: datetime) -> timedelta:
    """The shortest with which the time takes no more bars than are shown."""
    fitting = (length for length in _LENGTHS if (last - first) / length < MOST_BARS - 1)
    return next(fitting, (last - first) / (MOST_BARS - 2))
