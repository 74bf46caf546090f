"""Spans and log records as OTLP JSON, as they arrived: what was redacted stays redacted.

Source: opentelemetry-proto, `trace/v1/trace.proto`, `logs/v1/logs.proto`, and the JSON mapping of the OTLP
specification.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.span import Attributes, Link, Scope, Span, SpanEvent

_STATUS = {"unset": 0, "ok": 1, "error": 2}


def spans_json(spans: Iterable[Span]) -> bytes:
    """One `ExportTraceServiceRequest`; spans that came under one id stand beside each other."""
    spans = [each for span in spans for each in (*span.namesakes, span)]
    blocks = [
        {"resource": _resource(first), "scopeSpans": [{"scope": _scope(first.scope), "spans": [*map(_span, same)]}]}
        for first, same in _by_source(spans)
    ]
    return _text({"resourceSpans": blocks})


def logs_json(spans: Iterable[Span]) -> bytes:
    """The log records that name these spans, as one `ExportLogsServiceRequest`, under the resources of the spans."""
    blocks = [
        {"resource": _resource(first), "scopeLogs": [{"logRecords": [_log(s, log) for s in same for log in s.logs]}]}
        for first, same in _by_source(span for span in spans if span.logs)
    ]
    return _text({"resourceLogs": blocks})


def value_text(value: JsonValue) -> bytes:
    """A value of an attribute as a file: the text itself, else JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", errors="surrogatepass")


def _text(request: JsonObject) -> bytes:
    return json.dumps(request, separators=(",", ":")).encode()


def _by_source(spans: Iterable[Span]) -> list[tuple[Span, list[Span]]]:
    """Spans in a row that share resource and scope, each group with its first span."""
    groups = groupby(spans, key=lambda span: (span.resource, span.scope))
    return [(same[0], same) for _, group in groups if (same := list(group))]


def _resource(span: Span) -> JsonObject:
    return {"attributes": _attributes(span.resource)}


def _scope(scope: Scope) -> JsonObject:
    return {"name": scope.name, "version": scope.version, "attributes": _attributes(scope.attributes)}


def _span(span: Span) -> JsonObject:
    said: JsonObject = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id,
        "traceState": span.trace_state,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": _time(span.start_ns),
        "endTimeUnixNano": _time(span.end_ns),
        "attributes": _attributes(span.attributes),
        "events": [*map(_event, span.events)],
        "links": [*map(_link, span.links)],
        "status": {"code": _STATUS[span.status], "message": span.status_message},
        "droppedAttributesCount": span.dropped,
    }
    return {name: value for name, value in said.items() if value not in (None, "", [], 0)}


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else str(time_ns)


def _event(event: SpanEvent) -> JsonObject:
    at = _time(event.time_ns)
    return {"name": event.name, "attributes": _attributes(event.attributes)} | ({"timeUnixNano": at} if at else {})


def _link(link: Link) -> JsonObject:
    return {"traceId": link.trace_id, "spanId": link.span_id, "attributes": _attributes(link.attributes)}


def _log(span: Span, log: SpanEvent) -> JsonObject:
    said = _event(log) | {"traceId": span.trace_id, "spanId": span.span_id, "eventName": log.name}
    del said["name"]
    severity = {"severityText": log.severity} if log.severity else {}
    return said | severity | ({} if log.body is None else {"body": _value(log.body)})


def _attributes(attributes: Attributes) -> list[JsonObject]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: JsonValue) -> JsonObject:
    match value:
        case None:
            return {}
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [*map(_value, value)]}}
        case {"base64": str(text)} if len(value) == 1:
            return {"bytesValue": text}
        case {"double": "NaN" | "Infinity" | "-Infinity" as word} if len(value) == 1:
            return {"doubleValue": word}
        case _:
            return {"kvlistValue": {"values": _attributes(value)}}
