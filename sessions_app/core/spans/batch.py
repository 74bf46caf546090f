"""The spans and log records of one trace that came together, as they are stored.

    {"frames": [[span id, parent id, kind, start, end, status, resource, scope, dropped], …],
     "log_frames": [[span id, time, resource, scope], …],
     "nodes": [digest, …], "payloads": [digest, …],
     "words": {"resources": […], "scopes": […], "spans": […], "logs": […]}}

Ids, times and digests stand apart from the words, which alone are redacted: 16 digits in a row may look like a card.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessions_app.core.payload import JsonObject, JsonValue, compact_json
from sessions_app.core.spans.packing import BatchUnpacker, Packer, Pieces, Unpacker
from sessions_app.core.spans.span import Attributes, Link, LogRecord, Scope, Span, SpanEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """What is stored: the document, and the pieces that it refers to."""

    content: bytes
    pieces: Pieces
    nodes: Sequence[str]
    """Digests of the nodes that the document names."""
    payloads: Sequence[str]
    """The same of payloads."""
    said_bytes: int
    """Of all attributes before they were packed."""


class _Rows:
    """Equal rows once, each named by its position."""

    def __init__(self) -> None:
        self.rows: list[JsonValue] = []
        self._positions: dict[bytes, int] = {}
        self._by_identity: dict[int, int] = {}

    def position(self, owner: object, row: JsonValue) -> int:
        """`owner` is what the row was made from, which many spans share."""
        known = self._by_identity.get(id(owner))
        if known is None:
            known = self._positions.setdefault(compact_json(row), len(self.rows))
            if known == len(self.rows):
                self.rows.append(row)
            self._by_identity[id(owner)] = known
        return known


def write_batch(spans: Iterable[Span], logs: Iterable[LogRecord], packer: Packer) -> Batch:
    """`packer` is a fresh one. The order of spans makes no difference to the result."""
    resources, scopes = _Rows(), _Rows()
    frames, words, log_frames, log_words = [], [], [], []
    # In order of time a growing history comes after what it grew from.
    for span in sorted(spans, key=lambda span: (span.start_ns or 0, span.end_ns or 0, span.span_id)):
        frames.append(_frame(span, _resource(resources, span.resource), _scope(scopes, span.scope)))
        words.append(_span_words(span, packer))
    # Of one moment they stay as they came: many clocks tell milliseconds, and a request is written at once.
    for log in sorted(logs, key=lambda log: (log.span_id or "", log.event.time_ns or 0)):
        at = _resource(resources, log.resource), _scope(scopes, log.scope)
        log_frames.append([log.span_id, log.event.time_ns, *at])
        log_words.append(_event_words(log.event, packer))
    said = {"resources": resources.rows, "scopes": scopes.rows, "spans": words, "logs": log_words}
    redacted = packer.redacted(compact_json(said))
    frame = {
        "frames": frames,
        "log_frames": log_frames,
        "nodes": packer.nodes.digests,
        "payloads": packer.payloads.digests,
    }
    content = compact_json(frame)[:-1] + b',"words":' + redacted + b"}"
    return Batch(
        content=content,
        pieces=packer.pieces,
        nodes=packer.nodes.digests,
        payloads=packer.payloads.digests,
        said_bytes=packer.said_bytes,
    )


def _resource(rows: _Rows, resource: Attributes) -> int:
    return rows.position(resource, resource)


def _scope(rows: _Rows, scope: Scope) -> int:
    return rows.position(scope, [scope.name, scope.version, scope.attributes])


def _frame(span: Span, resource: int, scope: int) -> list[JsonValue]:
    at = [span.span_id, span.parent_id, span.kind, span.start_ns, span.end_ns, span.status]
    return [*at, resource, scope, span.dropped]


def _span_words(span: Span, packer: Packer) -> JsonObject:
    said: JsonObject = {
        "name": span.name,
        "message": span.status_message,
        "attributes": packer.attributes(span.attributes),
        "events": [_event_words(event, packer, event.time_ns) for event in span.events],
        "links": [[link.trace_id, link.span_id, link.attributes] for link in span.links],
        "state": span.trace_state,
    }
    return {name: value for name, value in said.items() if value}


def _event_words(event: SpanEvent, packer: Packer, time_ns: int | None = None) -> JsonObject:
    said: JsonObject = {
        "name": event.name,
        "time": time_ns,
        "attributes": packer.attributes(event.attributes),
        "body": None if event.body is None else packer.attributes({"body": event.body}),
        "severity": event.severity,
    }
    return {name: value for name, value in said.items() if value}


# --- back --------------------------------------------------------------------------------------


def references_of(content: bytes) -> tuple[list[str], list[str]]:
    """Digests of the nodes and of the payloads that a stored batch names."""
    value = json.loads(content)
    return value["nodes"], value["payloads"]


def read_batch(
    content: bytes, trace_id: str, unpacker: Unpacker, *, exact: bool = False
) -> tuple[list[Span], list[LogRecord]]:
    """Spans without their logs; `exact` as for `Unpacker.of`."""
    value = json.loads(content)
    words, reader = value["words"], unpacker.of(nodes=value["nodes"], payloads=value["payloads"], exact=exact)
    scopes = [Scope(name=name, version=version, attributes=said) for name, version, said in words["scopes"]]
    spans = [
        _span(frame, said, trace_id, words["resources"], scopes, reader)
        for frame, said in zip(value["frames"], words["spans"], strict=True)
    ]
    logs = [
        LogRecord(
            trace_id=trace_id,
            span_id=span_id,
            event=_event(said, reader, time_ns),
            resource=words["resources"][resource],
            scope=scopes[scope],
        )
        for (span_id, time_ns, resource, scope), said in zip(value["log_frames"], words["logs"], strict=True)
    ]
    return spans, logs


def _span(
    frame: list[JsonValue],
    said: JsonObject,
    trace_id: str,
    resources: Sequence[Attributes],
    scopes: Sequence[Scope],
    reader: BatchUnpacker,
) -> Span:
    span_id, parent_id, kind, start, end, status, resource, scope, dropped = frame
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=said.get("name", ""),
        kind=kind,
        start_ns=start,
        end_ns=end,
        status=status,
        status_message=said.get("message", ""),
        attributes=reader.attributes(said.get("attributes", {})),
        events=tuple(_event(event, reader, event.get("time")) for event in said.get("events", ())),
        links=tuple(Link(trace_id=t, span_id=s, attributes=a) for t, s, a in said.get("links", ())),
        scope=scopes[scope],
        resource=resources[resource],
        trace_state=said.get("state", ""),
        dropped=dropped,
    )


def _event(said: JsonObject, reader: BatchUnpacker, time_ns: int | None) -> SpanEvent:
    return SpanEvent(
        name=said.get("name", ""),
        time_ns=time_ns,
        attributes=reader.attributes(said.get("attributes", {})),
        body=reader.attributes(said["body"])["body"] if "body" in said else None,
        severity=said.get("severity"),
    )
