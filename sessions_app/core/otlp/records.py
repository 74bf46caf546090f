"""Spans and log records out of messages that were read, with the checks that make one worth keeping."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from sessions_app.core.compare.strict import same_json
from sessions_app.core.otlp.errors import OtlpError
from sessions_app.core.otlp.schema import SEVERITIES, Found
from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.span import Attributes, Link, LogRecord, Scope, Span, SpanEvent, SpanStatus

_TRACE_ID, _SPAN_ID = 32, 16
"""Hex digits."""
_HEX = re.compile("[0-9a-f]+")
_STATUSES: dict[int, SpanStatus] = {1: "ok", 2: "error"}
_LAST_TIME = 2**63 - 1
"""Nanoseconds: in the year 2262."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Who made the records of a block; all of them share it."""

    resource: Attributes
    scope: Scope


def make_origin(resource: Found, scope: Found) -> Origin:
    attributes = dict(scope["attributes"])
    made = Scope(name=scope["name"], version=scope["version"], attributes=attributes)
    return Origin(resource=dict(resource["attributes"]), scope=made)


def make_spans(found: Found, origin: Origin) -> Iterator[Span]:
    """The span, behind what else it says of itself; raises `OtlpError` for one without ids, or with times that no clock
    shows."""
    for attributes in _versions(found["attributes"]):
        yield _span(found, origin, attributes)


def _versions(pairs: list[tuple[str, JsonValue]]) -> list[Attributes]:
    """Attributes as they count, which is the last of each name. Before them stand others: the first values that a name
    has beside its last, then the second ones …"""
    last = dict(pairs)
    seen: Counter[str] = Counter()
    others: dict[int, Attributes] = defaultdict(dict)
    for name, value in pairs if len(last) < len(pairs) else ():
        if not same_json(value, last[name]):
            others[seen[name]][name] = value
            seen[name] += 1
    return [*others.values(), last]


def _span(found: Found, origin: Origin, attributes: Attributes) -> Span:
    return Span(
        trace_id=_needed_id(found, "trace_id", _TRACE_ID),
        span_id=_needed_id(found, "span_id", _SPAN_ID),
        parent_id=_id(found, "parent_span_id", _SPAN_ID),
        name=found["name"],
        kind=found["kind"] if 0 <= found["kind"] <= 5 else 0,
        start_ns=_time(found, "start_time_unix_nano"),
        end_ns=_time(found, "end_time_unix_nano"),
        status=_STATUSES.get(found["status"]["code"], "unset"),
        status_message=found["status"]["message"],
        attributes=attributes,
        events=tuple(chain.from_iterable(map(_events, found["events"]))),
        links=tuple(map(_link, found["links"])),
        scope=origin.scope,
        resource=origin.resource,
        trace_state=found["trace_state"],
        dropped=found["dropped_attributes_count"] + found["dropped_events_count"] + found["dropped_links_count"],
    )


def make_logs(found: Found, origin: Origin) -> Iterator[LogRecord]:
    """Likewise of a record; one that names no trace is fine."""
    for attributes in _versions(found["attributes"]):
        yield LogRecord(
            trace_id=_id(found, "trace_id", _TRACE_ID),
            span_id=_id(found, "span_id", _SPAN_ID),
            event=_log_event(found, attributes),
            scope=origin.scope,
            resource=origin.resource,
        )


def _log_event(found: Found, attributes: Attributes) -> SpanEvent:
    named = attributes.get("event.name")  # where the name stood before LogRecord got a field for it
    return SpanEvent(
        name=found["event_name"] or (named if isinstance(named, str) else ""),
        time_ns=_time(found, "time_unix_nano") or _time(found, "observed_time_unix_nano"),
        attributes=attributes,
        body=found["body"],
        severity=found["severity_text"] or _severity(found["severity_number"]),
    )


def _severity(number: int) -> str | None:
    return SEVERITIES[number] if 0 < number < len(SEVERITIES) else None


def _events(found: Found) -> Iterator[SpanEvent]:
    for attributes in _versions(found["attributes"]):
        yield SpanEvent(name=found["name"], time_ns=_time(found, "time_unix_nano"), attributes=attributes)


def _link(found: Found) -> Link:
    """Its ids as they came: a bad one leads nowhere, which is no reason to lose the span."""
    return Link(trace_id=found["trace_id"], span_id=found["span_id"], attributes=dict(found["attributes"]))


def _needed_id(found: Found, name: str, digits: int) -> str:
    if not found[name]:
        raise OtlpError(f"{name} is missing")
    text = _id(found, name, digits)
    if text is None:
        raise OtlpError(f"{name} is all zeros")
    return text


def _id(found: Found, name: str, digits: int) -> str | None:
    """None for an id that was not sent, or is all zeros, which means the same."""
    text: str = found[name]
    if text and (len(text) != digits or not _HEX.fullmatch(text)):
        raise OtlpError(f"{name} is not {digits // 2} bytes, in JSON {digits} hex digits")
    return text if text.strip("0") else None


def _time(found: Found, name: str) -> int | None:
    """None for 0, which means unknown."""
    time: int = found[name]
    if not 0 <= time <= _LAST_TIME:
        raise OtlpError(f"{name} is out of range")
    return time or None
