"""The chart of costs, or of tokens where nothing has a price: a bar for each stretch of time, by agent or model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from sessions_app.core.cost_figures import CostFigures, bar_length
from sessions_app.core.pricing import Cost
from sessions_app.models import Run
from sessions_app.services.prices import ListPrice

WIDTH, HEIGHT = 1200, 120
COLOURS = 6
"""Names with a colour of their own; the last one stands for all others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """An agent or a model, in the order of what they cost."""

    name: str | None
    cost: Cost
    percent: Decimal
    """Of the dollars, or of the tokens where some have no price."""
    list_price: ListPrice | None = None
    """Offered where the model has no price and a public one is known."""

    colour: int
    """Of its parts of the bars."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    colour: int
    y: float
    height: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    begins: datetime
    amount: Decimal
    is_torn: bool
    """Whether it is higher than the scale."""
    x: float
    width: float
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    bars: list[Bar]
    most: Decimal
    """The top of the scale; bars that are higher are torn."""
    first: datetime
    last: datetime

    @property
    def torn(self) -> bool:
        return any(bar.is_torn for bar in self.bars)

    @property
    def middle(self) -> datetime:
        return self.first + (self.last - self.first) / 2


def colours_of(figures: CostFigures[Run]) -> dict[str | None, int]:
    """A name keeps its colour when prices change: they go by tokens, and not by what these cost."""
    most = sorted(figures.of_names, key=lambda name: (-figures.of_names[name].tokens, name or ""))
    return {name: min(place, COLOURS - 1) for place, name in enumerate(most)}


def _top(sums: Sequence[Decimal]) -> Decimal:
    """The highest bar; where one stands far above all others, twice the next one, for it would flatten them."""
    highest, *others = sorted(sums, reverse=True)
    return min(highest, 2 * others[0]) if others and highest > _FAR * others[0] else highest


_FAR = 5


def cost_chart(figures: CostFigures[Run], now: datetime) -> Chart | None:
    """None where there is nothing to draw. What a clock that is ahead dates later than now stands at now."""
    amounts = {key: amount for key, cost in figures.in_time.items() if (amount := figures.amount(cost))}
    times = [min(at, now) for at, _ in amounts]
    if not times:
        return None
    length = bar_length(min(times), max(times))
    first = _floor(min(times), length.total_seconds())
    sums: dict[int, dict[int, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    colours = colours_of(figures)
    for (at, name), amount in amounts.items():
        sums[int((min(at, now) - first) / length)][colours[name]] += amount
    count, most = max(sums) + 1, _top([Decimal(sum(parts.values())) for parts in sums.values()])
    width = WIDTH / max(count, 12)
    bars = [
        Bar(
            begins=first + number * length,
            amount=(amount := Decimal(sum(parts.values()))),
            is_torn=amount > most,
            x=round(number * width, 1),
            width=round(width - 2, 1),
            parts=_parts(parts, max(amount, most)),
        )
        for number, parts in sorted(sums.items())
    ]
    return Chart(bars=bars, most=most, first=first, last=first + count * length)


def _floor(at: datetime, seconds: float) -> datetime:
    stamp = at.timestamp()
    return datetime.fromtimestamp(stamp - stamp % seconds, UTC)


def _parts(parts: dict[int, Decimal], most: Decimal) -> tuple[Part, ...]:
    """From below, in the order of their colours; none is too small to be seen."""
    made, top = [], float(HEIGHT)
    for colour, amount in sorted(parts.items()):
        height = max(float(amount / most) * HEIGHT, 1.0)
        top -= height
        made.append(Part(colour=colour, y=round(max(top, 0.0), 1), height=round(height, 1)))
    return tuple(made)
