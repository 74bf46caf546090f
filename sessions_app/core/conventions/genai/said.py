"""Where the GenAI convention puts its attributes: on the span, or on one event or log record that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.attributes import Read
from sessions_app.core.spans.span import Attributes, Span

DETAILS = "gen_ai.client.inference.operation.details"
"""The event that may carry any of the span's attributes, structured instead of as JSON text."""

_Found = TypeVar("_Found")


class Said(Read):
    """Attributes of which only those count as understood that could be read."""

    def take(self, convert: Callable[[JsonValue], _Found | None], *names: str) -> _Found | None:
        """The first of these that `convert` makes something of; all that it understands count as understood."""
        found = None
        for name in names:
            if name in self._attributes and (value := convert(self._attributes[name])) is not None:
                self.used.add(name)
                found = value if found is None else found
        return found

    def peek(self, name: str) -> JsonValue:
        """The value as it came, without counting it as understood."""
        return self._attributes.get(name)

    def has_any(self, *names: str) -> bool:
        return any(map(self.has, names))


def said_by(span: Span) -> Said:
    """The span's attributes, and those of its details event or record where the span itself has none."""
    found: Attributes = {name: value for name, value in span.attributes.items() if value is not None}
    for attributes in details_of(span):
        for name, value in attributes.items():
            if value is not None:
                found.setdefault(name, value)
    return Said(found)


def details_of(span: Span) -> Iterator[Attributes]:
    for event in (*span.events, *span.logs):
        if event.name == DETAILS:
            yield event.attributes
            yield event.body if isinstance(event.body, dict) else {}
