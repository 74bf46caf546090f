"""What only the span behind a step says: its place in the trace, and all that no convention understood.

It stands among the unknown fields of the step; a posted record may hold anything under the same name.
"""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.web.render import spelled
from sessions_app.web.render.tree import Node, build_tree

NODES = 80
MOST = 50
"""Events, links and twins that are drawn."""
_FACTS = (
    ("convention", "convention"),
    ("name", "span name"),
    ("status", "status"),
    ("status_message", "status message"),
    ("dropped", "left out by the sender"),
)
_DRAWN = {"span_id", "parent_id", "attributes", "events", "links", "twins", *(key for key, _ in _FACTS)}


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanEventRow:
    """A name with its attributes."""

    name: str
    attributes: Node | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StepSpan:
    """A span, and those that told of the same operation."""

    span_id: str
    parent_id: str | None
    facts: tuple[tuple[str, str], ...]
    attributes: tuple[tuple[str, Node], ...]
    events: tuple[SpanEventRow, ...]
    links: tuple[tuple[str, str], ...]
    """Trace and span."""
    twins: tuple[StepSpan, ...]
    rest: Node | None
    note: str = ""
    """How the step differs from what its span says."""


def step_span(extra: JsonObject) -> tuple[StepSpan | None, JsonObject]:
    """The span, and the fields that are not about it."""
    told = extra.get("span")
    if not isinstance(told, dict) or not isinstance(told.get("span_id"), str):
        return None, extra
    order = extra.get("tool_results")
    note = f"the results of tools {order}" if isinstance(order, str) else ""
    known = {"span", "tool_results"} if note else {"span"}
    return _span(told, note=note), {key: value for key, value in extra.items() if key not in known}


def _span(told: JsonObject, *, note: str = "", has_twins: bool = True) -> StepSpan:
    twins = [twin for twin in _list(told.get("twins")) if isinstance(twin, dict)] if has_twins else []
    rest = {key: value for key, value in told.items() if key not in _DRAWN}
    return StepSpan(
        span_id=_words(told.get("span_id")),
        parent_id=_words(told["parent_id"]) if told.get("parent_id") is not None else None,
        facts=tuple((words, _words(told[key])) for key, words in _FACTS if told.get(key) is not None),
        attributes=tuple(_attributes(told.get("attributes"))),
        events=tuple(_event(event) for event in _list(told.get("events"))),
        links=tuple(_link(link) for link in _list(told.get("links"))),
        twins=tuple(_span(twin, has_twins=False) for twin in twins),
        rest=_tree(rest) if rest else None,
        note=note,
    )


def _attributes(said: JsonValue) -> list[tuple[str, Node]]:
    if said is None:
        return []
    if not isinstance(said, dict):
        return [("attributes", _tree(said))]
    return [(name, _tree(value)) for name, value in list(said.items())[: MOST * 4]]


def _event(said: JsonValue) -> SpanEventRow:
    if not isinstance(said, dict):
        return SpanEventRow(name=_words(said), attributes=None)
    attributes = said.get("attributes")
    return SpanEventRow(name=_words(said.get("name", "")), attributes=_tree(attributes) if attributes else None)


def _link(said: JsonValue) -> tuple[str, str]:
    link = said if isinstance(said, dict) else {}
    return _words(link.get("trace_id", "")), _words(link.get("span_id", ""))


def _list(value: JsonValue) -> list[JsonValue]:
    return value[:MOST] if isinstance(value, list) else []


def _words(value: JsonValue) -> str:
    return value if isinstance(value, str) else spelled.compact(spelled.of_value(value))


def _tree(value: JsonValue) -> Node:
    return build_tree(spelled.of_value(value), nodes=NODES)
