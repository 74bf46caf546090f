"""The spans of a trace as a tree: each below the span around it, a page of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sessions_app.core.conventions.reading_order import read_span
from sessions_app.core.spans.reading import NOTHING, Reading
from sessions_app.core.spans.span import Span
from sessions_app.templatetags.recorded import duration
from sessions_app.web.sessions.outline import offset_words

SPANS = 200
"""Rows of a page."""
DEEPEST = 6
KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_NEVER = 1 << 80


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A span and where it stands."""

    span: Span
    depth: int
    is_orphan: bool
    """It names a span around it that is not there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanLine:
    """A row of the tree."""

    place: Place
    reading: Reading
    offset_ms: float | None
    """Since the first span of the trace began."""

    @property
    def span(self) -> Span:
        return self.place.span

    @property
    def depth(self) -> int:
        return min(self.place.depth, DEEPEST)

    @property
    def kind(self) -> str:
        return kind_words(self.span.kind)

    @property
    def not_understood(self) -> int:
        return len(self.span.attributes.keys() - self.reading.used)

    @property
    def convention(self) -> str | None:
        return None if self.reading.convention == NOTHING.convention else self.reading.convention

    @property
    def took(self) -> str:
        return "" if self.span.duration_ms is None else str(duration(self.span.duration_ms))

    @property
    def offset(self) -> str:
        return offset_words(self.offset_ms)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanPage:
    """Some rows of the tree, and what is before and after them."""

    lines: tuple[SpanLine, ...]
    first: int
    """Position of the first row, from 1."""
    total: int

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1

    @property
    def before(self) -> int | None:
        return self.first - SPANS if self.first > 1 else None

    @property
    def after(self) -> int | None:
        return self.last + 1 if self.last < self.total else None


def kind_words(kind: int) -> str:
    return KINDS[kind] if 0 <= kind < len(KINDS) else str(kind)


def span_page(places: Sequence[Place], *, at: int = 1, span_id: str = "") -> SpanPage:
    """The page with this span on it, else the one with this row; rows count from 1."""
    named = next((i for i, place in enumerate(places, start=1) if place.span.span_id == span_id), 0)
    row = min(max(named or at, 1), max(len(places), 1))
    first = (row - 1) // SPANS * SPANS
    began = min((place.span.start_ns for place in places if place.span.start_ns), default=None)
    lines = tuple(_line(place, began) for place in places[first : first + SPANS])
    return SpanPage(lines=lines, first=first + 1, total=len(places))


def _line(place: Place, began: int | None) -> SpanLine:
    start = place.span.start_ns
    offset = None if not start or began is None else (start - began) / 1_000_000
    return SpanLine(place=place, reading=reading_of(place.span), offset_ms=offset)


def reading_of(span: Span) -> Reading:
    """What its conventions make of a span; nothing where they fail, for the page of such a trace is the one to show."""
    try:
        return read_span(span)
    except Exception:
        return NOTHING


# --- the tree ----------------------------------------------------------------------------------


def in_tree_order(spans: Iterable[Span]) -> list[Place]:
    """Each span before those inside it, neighbours in order of time. Spans that claim to be inside each other come
    last, the first of them as if it were topmost."""
    ordered = sorted(spans, key=lambda span: (span.start_ns or _NEVER, span.span_id))
    known = {span.span_id for span in ordered}
    inside: dict[str, list[Span]] = {}
    for span in ordered:
        if span.parent_id in known:
            inside.setdefault(str(span.parent_id), []).append(span)
    topmost = [span for span in ordered if span.parent_id not in known]
    placed: dict[str, Place] = {}
    for span in [*topmost, *ordered]:
        is_orphan = span.parent_id is not None and span.parent_id not in known
        for place in _walk(span, is_orphan, inside, placed):
            placed[place.span.span_id] = place
    return list(placed.values())


def _walk(top: Span, is_orphan: bool, inside: dict[str, list[Span]], placed: dict[str, Place]) -> Iterator[Place]:
    stack = [(top, 0)]
    while stack:
        span, depth = stack.pop()
        if span.span_id in placed:
            continue
        yield Place(span=span, depth=depth, is_orphan=is_orphan and span is top)
        stack += [(child, depth + 1) for child in reversed(inside.get(span.span_id, []))]
