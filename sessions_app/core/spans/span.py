"""Spans and log records as they arrived, whatever encoding they came in.

Source of the fields: opentelemetry-proto, `trace/v1/trace.proto` and `logs/v1/logs.proto`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from sessions_app.core.payload import JsonValue

Attributes = dict[str, JsonValue]
"""Text, bool, int, float, list, dict or None; bytes are `{"base64": text}`, and a number that JSON does not know is
`{"double": "NaN" | "Infinity" | "-Infinity"}`."""
SpanStatus = Literal["unset", "ok", "error"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """The library that made the spans."""

    name: str = ""
    version: str = ""
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanEvent:
    """Something that happened at one moment: an event of a span, or a log record that names one."""

    name: str
    time_ns: int | None = None
    """Nanoseconds since 1970."""
    attributes: Attributes = field(default_factory=dict)
    body: JsonValue = None
    """Of a log record; events of spans have none."""
    severity: str | None = None
    """Of a log record."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """Another span that this one has to do with; ids in hex."""

    trace_id: str
    span_id: str
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """One operation of a trace."""

    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits."""
    parent_id: str | None = None
    name: str = ""
    kind: int = 0
    """As OTLP counts: 0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer."""
    start_ns: int | None = None
    """Nanoseconds since 1970."""
    end_ns: int | None = None
    status: SpanStatus = "unset"
    status_message: str = ""
    attributes: Attributes = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    links: tuple[Link, ...] = ()
    logs: tuple[SpanEvent, ...] = ()
    """Log records that name this span, in order of time; they arrive on their own."""
    scope: Scope = Scope()
    resource: Attributes = field(default_factory=dict)
    trace_state: str = ""
    dropped: int = 0
    """Attributes, events and links that the sender says it left out."""
    namesakes: tuple[Span, ...] = ()
    """Other spans that came under this id and say something else; each as it came."""

    @property
    def started_at(self) -> datetime | None:
        return moment(self.start_ns)

    @property
    def duration_ms(self) -> float | None:
        """None when either end is unknown, or the clock went backwards."""
        if not self.start_ns or not self.end_ns or self.end_ns < self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class LogRecord:
    """A log record; only those that name a trace can be shown with a run."""

    trace_id: str | None
    span_id: str | None
    event: SpanEvent
    scope: Scope = Scope()
    resource: Attributes = field(default_factory=dict)


def nanoseconds_of(at: datetime) -> int:
    """Since 1970, of a time with an offset; the other way of `moment`."""
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000


def moment(time_ns: int | None) -> datetime | None:
    """To the microsecond; None for 0 and for times that no calendar holds."""
    if not time_ns:
        return None
    try:
        return _EPOCH + timedelta(microseconds=time_ns // 1000)
    except OverflowError:
        return None
