"""Storing what one request brought of traces: one batch of spans each, and the pieces beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from sessions_app.core.payload import sha256_hex
from sessions_app.core.spans.batch import Batch
from sessions_app.core.spans.carried import FEW, MANY, Stored, carry
from sessions_app.core.spans.common import CommonPieces
from sessions_app.core.spans.known import Known, KnownTraces
from sessions_app.core.spans.packing import Pieces
from sessions_app.mapping import payloads
from sessions_app.mapping.binary_rows import binary_cursor
from sessions_app.mapping.history_nodes import write_nodes
from sessions_app.models import Project, Trace
from sessions_app.payloads.compression import pack

_COMMON = CommonPieces(10_000)
_KNOWN = KnownTraces(100_000)


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """What one request brought of one trace."""

    trace_id: str
    batch: Batch
    span_count: int
    has_end: bool
    """Whether a topmost span that ended is among them."""
    is_whole: bool
    """Whether one is, with the parents of all others."""

    @property
    def digest(self) -> str:
        return sha256_hex(self.batch.content)

    def stored(self, known: Known | None) -> Stored:
        """The batch as it is stored with a trace that has these pieces."""
        most = FEW if known is None and not self.is_whole else MANY
        return carry(self.batch, most=most, known=known, is_common=partial(_COMMON.is_common, trace_id=self.trace_id))


class _AnotherTrace(Exception):
    """A trace is not the one of which pieces were remembered: it was deleted, or put back to an earlier state."""


def store(project: Project, arrivals: Sequence[Arrival]) -> dict[str, Trace]:
    """The traces that got something new, by trace id; all or nothing is stored."""
    known = {arrival.trace_id: _KNOWN.get(project.pk, arrival.trace_id) for arrival in arrivals}
    try:
        return _store(project, arrivals, known)
    except _AnotherTrace:
        return _store(project, arrivals, dict.fromkeys(known))


def _store(project: Project, arrivals: Sequence[Arrival], known: Mapping[str, Known | None]) -> dict[str, Trace]:
    stored = [arrival.stored(known[arrival.trace_id]) for arrival in arrivals]
    rows, beside = _columns(arrivals, stored), Pieces()
    for batch in stored:
        beside.add(batch.beside)
    with transaction.atomic():
        payloads.write_many(project.pk, beside.payloads)
        write_nodes(project.pk, beside.nodes)
        keys = _add_traces(project, known)
        traces = _add_batches({**rows, "traces": [keys[arrival.trace_id] for arrival in arrivals]})
        transaction.on_commit(partial(_remember, project, arrivals, traces), robust=True)
    for trace in traces:
        trace.project = project
    return {trace.trace_id: trace for trace in traces}


def _columns(arrivals: Sequence[Arrival], stored: Sequence[Stored]) -> dict[str, Any]:
    packed = [pack(batch.content) for batch in stored]
    return {
        "digests": [bytes.fromhex(arrival.digest) for arrival in arrivals],
        "contents": [each.data for each in packed],
        "packed": [each.is_compressed for each in packed],
        "spans": [arrival.span_count for arrival in arrivals],
        "said": [arrival.batch.said_bytes for arrival in arrivals],
    }


_ADD_TRACES = """
INSERT INTO sessions_app_trace
    (project_id, trace_id, batches_received, batches_assembled, span_count, said_bytes, changed_at, is_closed)
SELECT %(project)s, trace_id, 0, 0, 0, 0, %(now)s, false FROM unnest(%(traces)s::text[]) AS trace_id
ON CONFLICT (project_id, trace_id) DO UPDATE SET changed_at = EXCLUDED.changed_at
RETURNING trace_id, id, batches_received
"""


def _add_traces(project: Project, known: Mapping[str, Known | None]) -> dict[str, int]:
    """Their keys by their ids. They are locked from here: what is remembered of them stays true."""
    with connection.cursor() as cursor:
        cursor.execute(_ADD_TRACES, {"project": project.pk, "now": timezone.now(), "traces": list(known)})
        rows = cursor.fetchall()
    for trace_id, key, batches in rows:
        remembered = known[trace_id]
        if remembered is not None and not remembered.speaks_of(key, batches):
            raise _AnotherTrace
    return {trace_id: key for trace_id, key, _ in rows}


_TRACE = tuple(field.attname for field in Trace._meta.concrete_fields)
_ADD_BATCHES = """
WITH arrived AS (
    SELECT * FROM unnest(%(traces)b::bigint[], %(digests)b::bytea[], %(contents)b::bytea[], %(packed)b::bool[],
                         %(spans)b::int[], %(said)b::bigint[]) AS row(trace, digest, content, packed, spans, said)
), added AS (
    INSERT INTO sessions_app_spanbatch (trace_id, digest, content, is_compressed, received_at)
    SELECT trace, digest, content, packed, %(now)s FROM arrived
    ON CONFLICT (trace_id, digest) DO NOTHING
    RETURNING trace_id
)
UPDATE sessions_app_trace trace
SET batches_received = batches_received + 1, span_count = span_count + arrived.spans,
    said_bytes = trace.said_bytes + arrived.said
FROM arrived JOIN added ON added.trace_id = arrived.trace
WHERE trace.id = arrived.trace
RETURNING {}
""".format(", ".join(f"trace.{name}" for name in _TRACE))


def _add_batches(rows: dict[str, Any]) -> list[Trace]:
    """The traces that got something new: a batch that came before counts once."""
    with binary_cursor() as cursor:
        cursor.execute(_ADD_BATCHES, {"now": timezone.now(), **rows})
        return [Trace.from_db(connection.alias, _TRACE, row) for row in cursor.fetchall()]


def _remember(project: Project, arrivals: Sequence[Arrival], traces: Sequence[Trace]) -> None:
    """What is committed. Of a trace that came whole nothing more is expected."""
    stored = {trace.trace_id: trace for trace in traces}
    for arrival in arrivals:
        trace = stored.get(arrival.trace_id)
        if trace is not None and not arrival.is_whole:
            at, pieces = trace.batches_received, arrival.batch.pieces
            _KNOWN.add(project.pk, arrival.trace_id, trace=trace.pk, batches=at, pieces=pieces)
