"""The histogram above the list, and the values beside it that narrow it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sessions_app.core.search.query import Query, Term, TextValue, quoted
from sessions_app.models import Project
from sessions_app.queries.session_overview import OUTCOMES, Facet, Overview, TimeBar, session_overview
from sessions_app.queries.sessions import Span
from sessions_app.web.badges import state_of
from sessions_app.web.session_list.address import ListAddress
from sessions_app.web.session_list.typed_times import spelled_time

WIDTH, HEIGHT = 1200, 56
SHOWN = 8
_WORDS = {"group": "what went wrong"}
_READINESS = {"ready": "replayable", "partial": "replayable to a step"}
"""As the column says it."""
_SECOND = timedelta(seconds=1)
"""Addresses have whole ones: none is lost between two bars."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawnBar:
    """One bar: its parts from below, and the list that it narrows to."""

    x: float
    width: float
    parts: tuple[tuple[str, float, float], ...]
    """Outcome, y, height."""
    is_torn: bool
    """It is higher than is drawn."""
    words: str
    href: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    words: str
    note: str
    """What tells it from others of the same words."""
    count: int
    is_on: bool
    only: str
    without: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownFacet:
    key: str
    title: str
    values: list[Value]
    more: list[Value]


def overview_context(project: Project, address: ListAddress, query: Query, span: Span, now: datetime) -> dict[str, Any]:
    found = session_overview(project, query, span, now)
    most = drawn_height(found.bars)
    return {
        "overview": found,
        "bars": [_drawn(number, bar, most, address) for number, bar in enumerate(found.bars) if bar.count],
        "most": most,
        "older": _until(address, found.bars[0].begins) if found.older else "",
        "cold_line": _cold_line(found.bars, most),
        "has_cold": any(bar.cold for bar in found.bars),
        "outcomes": [(name, state_of("run", name)) for name in _seen_outcomes(found.bars)],
        "facets": [_shown(facet, found, address, query) for facet in found.facets if facet.counts],
    }


def _until(address: ListAddress, end: datetime) -> str:
    return str(address.top.but(range="", since="", until=spelled_time(end)))


def _seen_outcomes(bars: tuple[TimeBar, ...]) -> list[str]:
    return [name for name in OUTCOMES if any(bar.outcomes[name] for bar in bars)]


def drawn_height(bars: tuple[TimeBar, ...]) -> int:
    """How many sessions the full height stands for: one bar that is far above the others does not flatten them."""
    counts = sorted(bar.count for bar in bars if bar.count)
    if not counts:
        return 1
    usual = counts[max(len(counts) * 9 // 10 - 1, 0)]
    return counts[-1] if counts[-1] <= 3 * usual else 2 * usual


def _drawn(number: int, bar: TimeBar, most: int, address: ListAddress) -> DrawnBar:
    width = WIDTH / 60
    return DrawnBar(
        x=round(number * width + 1, 1),
        width=round(width - 2, 1),
        parts=_parts(bar, most),
        is_torn=bar.count > most,
        words=_words_of(bar),
        href=str(address.top.but(range="", since=spelled_time(bar.begins), until=spelled_time(bar.ends + _SECOND))),
    )


def _parts(bar: TimeBar, most: int) -> tuple[tuple[str, float, float], ...]:
    """A few failures among many successes are still seen: each part has at least two units."""
    parts, top = [], float(HEIGHT)
    for name in OUTCOMES:
        if count := bar.outcomes[name]:
            height = min(max(count / most * HEIGHT, 2.0), top)
            top -= height
            parts.append((name, round(top, 1), round(height, 1)))
    return tuple(parts)


def _words_of(bar: TimeBar) -> str:
    counts = [f"{bar.outcomes[name]} {state_of('run', name).word}" for name in OUTCOMES if bar.outcomes[name]]
    cold = [f"{bar.cold} cold"] if bar.cold else []
    return f"{bar.begins.astimezone(UTC):%Y-%m-%d %H:%M} UTC: {', '.join([*counts, *cold])}"


def _cold_line(bars: tuple[TimeBar, ...], most: int) -> str:
    """Points of its own line, on the scale of the bars."""
    points = (
        (round((number + 0.5) * WIDTH / 60, 1), round(HEIGHT - min(bar.cold / most, 1) * (HEIGHT - 2) - 1, 1))
        for number, bar in enumerate(bars)
    )
    return " ".join(f"{x},{y}" for x, y in points)


def _shown(facet: Facet, found: Overview, address: ListAddress, query: Query) -> ShownFacet:
    values = [_value(facet.key, value, count, found, address, query) for value, count in facet.counts]
    title = _WORDS.get(facet.key, facet.key)
    return ShownFacet(key=facet.key, title=title, values=values[:SHOWN], more=values[SHOWN:])


def _value(key: str, value: str, count: int, found: Overview, address: ListAddress, query: Query) -> Value:
    part = f"{key}:{quoted(value)}"
    on = next((term.part for term in query.terms if _is_only(term, key, value)), None)
    others = address.q if on is None else query.without(on)
    words, note = found.errors.get(value, (value, "")) if key == "group" else (_words_for(key, value), "")
    return Value(
        words=words,
        note=note,
        count=count,
        is_on=on is not None,
        only=str(address.top.but(q=others if on else f"{others} {part}".strip())),
        without=str(address.top.but(q=f"{others} -{part}".strip())),
    )


def _words_for(key: str, value: str) -> str:
    if key == "status":
        return state_of("run", value).word
    return _READINESS.get(value, value) if key == "replay" else value


def _is_only(term: Term, key: str, value: str) -> bool:
    return not term.is_negated and term.key == key and term.values == (TextValue(text=value),)
