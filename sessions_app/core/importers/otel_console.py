"""What OpenTelemetry's `ConsoleSpanExporter` (Python) prints: one JSON object for each span, one after the other.

Source: `ReadableSpan.to_json` of opentelemetry-sdk. Ids have the prefix `0x`, which tells these spans from others.
"""

from __future__ import annotations

from sessions_app.core.errors import RecordError
from sessions_app.core.importers.entry import Entry, entries
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_text
from sessions_app.core.spans.span import Attributes, Link, Scope, Span, SpanEvent, SpanStatus
from sessions_app.core.spans.times import nanoseconds

_STATUS: dict[str, SpanStatus] = {"OK": "ok", "ERROR": "error"}
_KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_DIGITS = {"trace_id": 32, "span_id": 16}


def matches(value: JsonValue) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, dict) and _has_hex_context(item) for item in items)


def to_spans(value: JsonValue) -> list[Span]:
    """Raises `RecordError` naming the field."""
    return [_span(entry) for entry in entries(value if isinstance(value, list) else [value], "")]


def _has_hex_context(item: JsonObject) -> bool:
    context = item.get("context")
    trace_id = context.get("trace_id") if isinstance(context, dict) else None
    return isinstance(trace_id, str) and trace_id.startswith("0x")


def _span(entry: Entry) -> Span:
    context = Entry(entry.object("context") or {}, entry.at("context"))
    status = Entry(entry.object("status") or {}, entry.at("status"))
    resource = Entry(entry.object("resource") or {}, entry.at("resource"))
    parent = entry.text("parent_id")
    return Span(
        trace_id=_hex(context, "trace_id", context.required("trace_id")),
        span_id=_hex(context, "span_id", context.required("span_id")),
        parent_id=_hex(entry, "span_id", parent) if parent else None,
        name=entry.text("name") or "",
        kind=_kind(entry.text("kind")),
        start_ns=entry.time("start_time"),
        end_ns=entry.time("end_time"),
        status=_STATUS.get(status.text("status_code") or "", "unset"),
        status_message=status.text("description") or "",
        attributes=entry.object("attributes") or {},
        events=tuple(_event(item) for item in entry.list("events") if isinstance(item, dict)),
        links=tuple(_link(link) for link in entries(entry.list("links"), entry.at("links"))),
        scope=Scope(name="console"),
        resource=resource.object("attributes") or {},
    )


def _hex(entry: Entry, name: str, text: str) -> str:
    digits = text.removeprefix("0x").lower()
    try:
        number = int(digits, 16)
    except ValueError:
        number = 0
    if not number or len(digits) != _DIGITS[name]:
        raise RecordError(f"{entry.at(name)} is no id of OpenTelemetry.", field=entry.at(name))
    return digits


def _kind(text: str | None) -> int:
    word = (text or "").removeprefix("SpanKind.")
    return _KINDS.index(word) if word in _KINDS else 0


def _event(item: JsonObject) -> SpanEvent:
    said = item.get("attributes")
    attributes: Attributes = said if isinstance(said, dict) else {}
    return SpanEvent(
        name=as_text(item.get("name")) or "", time_ns=nanoseconds(item.get("timestamp")), attributes=attributes
    )


def _link(link: Entry) -> Link:
    context = Entry(link.object("context") or {}, link.at("context"))
    return Link(
        trace_id=_hex(context, "trace_id", context.required("trace_id")),
        span_id=_hex(context, "span_id", context.required("span_id")),
        attributes=link.object("attributes") or {},
    )
