"""Reading attributes that may be missing, of another type than expected, or JSON inside text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.span import Attributes, Span, SpanEvent


class Read:
    """The attributes of a span (or event), and which of them were understood."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self.used: set[str] = set()

    def names(self) -> Iterable[str]:
        return self._attributes.keys()

    def has(self, name: str) -> bool:
        return name in self._attributes

    def raw(self, *names: str) -> JsonValue:
        """The first of these that is there and not None; all that are there count as understood."""
        found = None
        for name in names:
            if name in self._attributes:
                self.used.add(name)
                found = self._attributes[name] if found is None else found
        return found

    def peek(self, name: str) -> JsonValue:
        """The value, which does not count as understood: it will still be shown."""
        return self._attributes.get(name)

    def text(self, *names: str) -> str | None:
        """A text that is not empty."""
        return next((value for name in names if isinstance(value := self.raw(name), str) and value), None)

    def number(self, *names: str) -> float | int | None:
        return next((value for name in names if (value := as_number(self.raw(name))) is not None), None)

    def count(self, *names: str) -> int | None:
        """A whole number from 0, also where it was sent as text or as a double."""
        return next((value for name in names if (value := as_count(self.raw(name))) is not None), None)

    def json(self, *names: str) -> JsonValue:
        """The value, with JSON inside a text read; a text that is no JSON stays that text."""
        return parsed(self.raw(*names))

    def object(self, *names: str) -> JsonObject | None:
        value = self.json(*names)
        return value if isinstance(value, dict) else None

    def list(self, *names: str) -> list[JsonValue] | None:
        value = self.json(*names)
        return value if isinstance(value, list) else None

    def under(self, prefix: str) -> JsonObject:
        """All attributes below a prefix, without it."""
        found = {name[len(prefix) :]: value for name, value in self._attributes.items() if name.startswith(prefix)}
        self.used.update(prefix + name for name in found)
        return found


def as_number(value: JsonValue) -> float | int | None:
    value = parsed(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_count(value: JsonValue) -> int | None:
    number = as_number(value)
    if number is None or not 0 <= number <= _MAX_COUNT or number != int(number):
        return None
    return int(number)


_MAX_COUNT = 2**53
"""Above it a double does not count any more."""


def as_text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def without_none(values: Mapping[str, JsonValue]) -> JsonObject | None:
    """Those that are said; None when none is."""
    return {key: value for key, value in values.items() if value is not None} or None


def error_of(span: Span) -> ErrorInfo | None:
    """What OpenTelemetry itself says of a failure: the last `exception` event, `error.type`, the status."""
    raised = exception_of(span.events)
    if raised is not None:
        return raised
    error_type = _class_name(span.attributes.get("error.type"))
    # By the conventions only what failed has an `error.type`; not everybody sets the status too.
    has_failed = span.status == "error" or (span.status == "unset" and error_type is not None)
    return ErrorInfo(type=error_type, message=span.status_message or None) if has_failed else None


def _class_name(value: JsonValue) -> str | None:
    """`<class 'package.Name'>`, as Python prints a class, is its name."""
    text = as_text(value)
    return None if text is None else text.removeprefix("<class '").removesuffix("'>")


def exception_of(events: Iterable[SpanEvent]) -> ErrorInfo | None:
    found = None
    for event in events:
        if event.name == "exception":
            found = event
    if found is None:
        return None
    said = found.attributes
    stack = as_text(said.get("exception.stacktrace"))
    return ErrorInfo(
        type=_class_name(said.get("exception.type")),
        message=as_text(said.get("exception.message")),
        extra={} if stack is None else {"stacktrace": stack},
    )
