"""One span opened: everything in it, to the letter, with long values folded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.span import Attributes, Link, Span, SpanEvent, moment
from sessions_app.web.render import spelled
from sessions_app.web.render.tree import Node, build_tree
from sessions_app.web.traces.span_tree import kind_words, reading_of

NODES = 80
"""Of one value."""
ATTRIBUTES = 300
EVENTS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownAttribute:
    """A name and its value."""

    name: str
    node: Node
    number: int
    """Its place among the span's attributes, for the address of its whole value."""
    is_understood: bool

    @property
    def is_part(self) -> bool:
        return bool(self.node.cut or self.node.folded or self.node.hidden) or _has_cut(self.node)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownEvent:
    """An event or a log record."""

    name: str
    offset_ms: float | None
    """Since the span began."""
    severity: str | None
    body: Node | None
    attributes: Node | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownSpan:
    """A span, ready for a template."""

    span: Span
    kind: str
    convention: str
    started: str | None
    ended: str | None
    attributes: tuple[ShownAttribute, ...]
    events: tuple[ShownEvent, ...]
    logs: tuple[ShownEvent, ...]
    links: tuple[Link, ...]
    scope_attributes: Node | None
    more: tuple[tuple[int, str], ...]
    """How much of what is not drawn."""
    namesakes: tuple[tuple[str | None, Node | None], ...]
    """When other spans with this id ended, and their attributes."""

    @property
    def not_understood(self) -> int:
        return sum(not attribute.is_understood for attribute in self.attributes)


def shown_span(span: Span) -> ShownSpan:
    reading = reading_of(span)
    parts = ((span.attributes, ATTRIBUTES, "attributes"), (span.events, EVENTS, "events"))
    parts_after = ((span.logs, EVENTS, "log records"), (span.links, EVENTS, "links"))
    return ShownSpan(
        span=span,
        kind=kind_words(span.kind),
        convention=reading.convention,
        started=exact_time(span.start_ns),
        ended=exact_time(span.end_ns),
        attributes=tuple(_attributes(span.attributes, reading.used)),
        events=tuple(_event(event, span) for event in span.events[:EVENTS]),
        logs=tuple(_event(event, span) for event in span.logs[:EVENTS]),
        links=span.links[:EVENTS],
        scope_attributes=_tree(span.scope.attributes),
        more=tuple((len(held) - most, what) for held, most, what in parts + parts_after if len(held) > most),
        namesakes=tuple((exact_time(each.end_ns), _tree(each.attributes)) for each in span.namesakes[:EVENTS]),
    )


def exact_time(time_ns: int | None) -> str | None:
    """To the nanosecond, as the span says it."""
    whole = moment(time_ns)
    if whole is None or time_ns is None:
        return None
    second = whole - timedelta(microseconds=whole.microsecond)
    return f"{second:%Y-%m-%d %H:%M:%S}.{time_ns % 1_000_000_000:09d}Z"


def _attributes(attributes: Attributes, used: frozenset[str]) -> Iterable[ShownAttribute]:
    """Those that nobody understood first: what the others say is in the step already."""
    rows = [
        ShownAttribute(name=name, node=_node(value), number=number, is_understood=name in used)
        for number, (name, value) in enumerate(attributes.items())
        if number < ATTRIBUTES
    ]
    return sorted(rows, key=lambda row: (row.is_understood, row.name))


def _event(event: SpanEvent, span: Span) -> ShownEvent:
    is_known = event.time_ns and span.start_ns
    return ShownEvent(
        name=event.name,
        offset_ms=(event.time_ns - span.start_ns) / 1_000_000 if is_known else None,  # type: ignore[operator]
        severity=event.severity,
        body=None if event.body is None else _node(event.body),
        attributes=_tree(event.attributes),
    )


def _tree(attributes: Attributes) -> Node | None:
    return _node(attributes) if attributes else None


def _node(value: JsonValue) -> Node:
    return build_tree(spelled.of_value(value), nodes=NODES)


def _has_cut(node: Node) -> bool:
    return any(child.cut or child.folded or child.hidden or _has_cut(child) for child in node.children)


# --- what spans share --------------------------------------------------------------------------

RESOURCES = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """A resource, and how many spans name it."""

    tree: Node | None
    spans: int


def resources_of(spans: Iterable[Span]) -> list[Shared]:
    """Each once, the most frequent first."""
    counts: dict[str, int] = {}
    values: dict[str, Attributes] = {}
    for span in spans:
        key = json.dumps(span.resource, sort_keys=True)
        counts[key] = counts.get(key, 0) + 1
        values[key] = span.resource
    keys = sorted(counts, key=lambda key: -counts[key])[:RESOURCES]
    return [Shared(tree=_tree(values[key]), spans=counts[key]) for key in keys]
