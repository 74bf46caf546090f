"""The chart of costs: a bar for each stretch of time, in parts by agent or model."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from sessions_app.core.cost_figures import CostFigures, bar_length
from sessions_app.core.pricing import Cost
from sessions_app.models import Run

WIDTH, HEIGHT = 1200, 120
COLOURS = 6
"""Names with a colour of their own; the last one stands for all others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """An agent or a model, in the order of what they cost."""

    name: str | None
    place: int
    cost: Cost
    percent: Decimal

    @property
    def colour(self) -> int:
        return min(self.place, COLOURS - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    colour: int
    y: float
    height: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    begins: datetime
    dollars: Decimal
    x: float
    width: float
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    bars: list[Bar]
    most: Decimal
    first: datetime
    last: datetime


def cost_chart(figures: CostFigures[Run], now: datetime) -> Chart | None:
    """None where nothing has a price. What a clock that is ahead dates later than now stands at now."""
    times = [min(at, now) for (at, _), cost in figures.in_time.items() if cost.is_known]
    if not times:
        return None
    length = bar_length(min(times), max(times))
    first = _floor(min(times), length.total_seconds())
    sums: dict[int, dict[int, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    colours = {name: min(place, COLOURS - 1) for place, name in enumerate(figures.names)}
    for (at, name), cost in figures.in_time.items():
        if cost.is_known:
            sums[int((min(at, now) - first) / length)][colours[name]] += cost.dollars
    count, most = max(sums) + 1, max(sum(parts.values()) for parts in sums.values()) or Decimal(1)
    width = WIDTH / max(count, 12)
    bars = [
        Bar(
            begins=first + number * length,
            dollars=Decimal(sum(parts.values())),
            x=round(number * width, 1),
            width=round(width - 2, 1),
            parts=_parts(parts, most),
        )
        for number, parts in sorted(sums.items())
    ]
    return Chart(bars=bars, most=Decimal(most), first=first, last=first + count * length)


def _floor(at: datetime, seconds: float) -> datetime:
    stamp = at.timestamp()
    return datetime.fromtimestamp(stamp - stamp % seconds, UTC)


def _parts(parts: dict[int, Decimal], most: Decimal) -> tuple[Part, ...]:
    """From below, in the order of their colours; what costs anything is at least seen."""
    made, top = [], float(HEIGHT)
    for colour, dollars in sorted(parts.items()):
        height = max(float(dollars / most) * HEIGHT, 1.0) if dollars else 0.0
        top -= height
        made.append(Part(colour=colour, y=round(max(top, 0.0), 1), height=round(height, 1)))
    return tuple(made)
