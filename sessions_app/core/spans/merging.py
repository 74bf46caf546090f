"""Spans that came in several posts, some of them twice or in pieces, as one of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from sessions_app.core.compare.strict import same_json
from sessions_app.core.payload import canonical_json
from sessions_app.core.spans.span import LogRecord, Span, SpanEvent

_SEVERITY = {"unset": 0, "ok": 1, "error": 2}


def merge(spans: Iterable[Span], logs: Iterable[LogRecord]) -> list[Span]:
    """Each span once, with its log records; the order of arrival makes no difference.

    Versions of one span are laid over each other, the one that ended last, or says more, on top: a producer may send a
    span when it begins and what came later when it ends. Where two that have ended contradict each other, they are two
    spans under one id: the lower one is kept beside the other.
    """
    versions: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        versions[span.span_id].append(span)
    records = _by_span(logs)
    return [_with_logs(_merged(versions[span_id]), tuple(records.get(span_id, ()))) for span_id in sorted(versions)]


def _with_logs(span: Span, logs: tuple[SpanEvent, ...]) -> Span:
    return replace(span, logs=logs) if logs != span.logs else span


def _by_span(logs: Iterable[LogRecord]) -> dict[str, list[SpanEvent]]:
    found: dict[str, dict[bytes, SpanEvent]] = defaultdict(dict)
    for log in logs:
        if log.span_id:
            found[log.span_id].setdefault(_key(log.event), log.event)
    # Those of one moment stay in the order of their request.
    return {span_id: sorted(events.values(), key=lambda event: event.time_ns or 0) for span_id, events in found.items()}


def _key(event: SpanEvent) -> bytes:
    said = [event.name, event.time_ns, event.attributes, event.body, event.severity]
    return canonical_json(said)


def _merged(versions: list[Span]) -> Span:
    if len(versions) == 1:
        return versions[0]
    lowest, *others = sorted(versions, key=lambda span: (span.end_ns or 0, len(span.attributes), _span_key(span)))
    merged, last = lowest, others[-1]
    for other in others:
        merged = _over(merged, other)
    distinct = {_span_key(span): span for span in (lowest, *others[:-1])}
    namesakes = tuple(span for span in distinct.values() if _contradict(span, last))
    return replace(merged, namesakes=namesakes) if namesakes else merged


def _contradict(one: Span, other: Span) -> bool:
    """Both have ended, and what one says under a name the other says otherwise."""
    if not one.end_ns or not other.end_ns:
        return False
    shared = one.attributes.keys() & other.attributes.keys()
    is_other_name = bool(one.name and other.name and one.name != other.name)
    return is_other_name or any(not same_json(one.attributes[name], other.attributes[name]) for name in shared)


def _span_key(span: Span) -> bytes:
    said = [span.name, span.start_ns, span.parent_id, span.status, span.status_message, span.attributes]
    return canonical_json([*said, [_key(event).decode() for event in span.events]])


def _over(lower: Span, upper: Span) -> Span:
    """What the upper one says counts; what it leaves open is taken from below."""
    if lower == upper:
        return lower
    seen = {_key(event) for event in upper.events}
    events = [*upper.events, *(event for event in lower.events if _key(event) not in seen)]
    starts = [start for start in (lower.start_ns, upper.start_ns) if start]
    worse = max(upper, lower, key=lambda span: _SEVERITY[span.status])
    return replace(
        upper,
        parent_id=upper.parent_id or lower.parent_id,
        name=upper.name or lower.name,
        start_ns=min(starts) if starts else None,
        end_ns=upper.end_ns or lower.end_ns,
        status=worse.status,
        status_message=worse.status_message or upper.status_message or lower.status_message,
        attributes={**lower.attributes, **upper.attributes},
        events=tuple(sorted(events, key=lambda event: (event.time_ns or 0, event.name))),
        resource={**lower.resource, **upper.resource},
        dropped=max(lower.dropped, upper.dropped),
    )
