"""Storing what one request brought of traces: one batch of spans each, and the pieces beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import OperationalError, connection, transaction
from django.utils import timezone

from sessions_app.core.spans.batch import Batch
from sessions_app.core.spans.carried import FEW, MANY, Stored, carry
from sessions_app.core.spans.common import CommonPieces
from sessions_app.core.spans.known import Known, KnownTraces, Newest
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
    digest: str
    """Of the batch, SHA-256."""
    span_count: int
    has_end: bool
    """Whether a topmost span that ended is among them."""
    is_whole: bool
    """Whether one is, with the parents of all others."""

    def stored(self, known: Known | None) -> Stored:
        """The batch as it is stored with a trace that has these pieces."""
        most = FEW if known is None and not self.is_whole else MANY
        return carry(self.batch, most=most, known=known, is_common=partial(_COMMON.is_common, trace_id=self.trace_id))


_TRIES = 3


def store(project: Project, arrivals: Sequence[Arrival]) -> dict[str, Trace]:
    """The traces that got something new, by trace id. All of it is committed, unless the caller has a transaction."""
    known = {arrival.trace_id: _KNOWN.get(project.pk, arrival.trace_id) for arrival in arrivals}
    traces: dict[str, Trace] = {}
    left = arrivals
    for _ in range(_TRIES):
        found = _store(project, left, known)
        traces |= {trace_id: trace for trace_id, trace in found.items() if trace is not None}
        left, known = [arrival for arrival in left if arrival.trace_id not in found], {}
        if not left:
            return traces
        for arrival in left:
            _KNOWN.forget(project.pk, arrival.trace_id)
    raise OperationalError("Traces come and go faster than they can be stored.")


def _store(project: Project, arrivals: Sequence[Arrival], known: Mapping[str, Known | None]) -> dict[str, Trace | None]:
    """By trace id, as `_add` says."""
    stored = [arrival.stored(known.get(arrival.trace_id)) for arrival in arrivals]
    rows, beside = _columns(arrivals, stored, known), Pieces()
    for batch in stored:
        beside.add(batch.beside)
    new = payloads.missing(project.pk, beside.payloads)
    # One statement needs no transaction around it.
    with transaction.atomic() if new or beside.nodes else nullcontext():
        payloads.add(project.pk, new)
        write_nodes(project.pk, beside.nodes)
        found = _add(project, rows)
        transaction.on_commit(partial(_remember, project, arrivals, found), robust=True)
    return found


def _columns(
    arrivals: Sequence[Arrival], stored: Sequence[Stored], known: Mapping[str, Known | None]
) -> dict[str, Any]:
    packed = [pack(batch.content) for batch in stored]
    return {
        "traces": [arrival.trace_id for arrival in arrivals],
        "digests": [bytes.fromhex(arrival.digest) for arrival in arrivals],
        "contents": [each.data for each in packed],
        "packed": [each.is_compressed for each in packed],
        "spans": [arrival.span_count for arrival in arrivals],
        "said": [arrival.batch.said_bytes for arrival in arrivals],
        **_meant([known.get(arrival.trace_id) for arrival in arrivals]),
    }


def _meant(remembered: Sequence[Known | None]) -> dict[str, Any]:
    """What tells the traces of which pieces are remembered."""
    return {
        "keys": [None if each is None else each.trace for each in remembered],
        "newest": [None if each is None else bytes.fromhex(each.newest.digest) for each in remembered],
        "newest_at": [None if each is None else each.newest.received_at for each in remembered],
    }


_TRACE = tuple(field.attname for field in Trace._meta.concrete_fields)
_ADD = """
WITH arrived AS (
    SELECT * FROM unnest(%(traces)b::text[], %(digests)b::bytea[], %(contents)b::bytea[], %(packed)b::bool[],
                         %(spans)b::int[], %(said)b::bigint[], %(keys)b::bigint[], %(newest)b::bytea[],
                         %(newest_at)b::timestamptz[])
               AS row(trace_id, digest, content, packed, spans, said, key, newest, newest_at)
), here AS (
    SELECT trace.id, trace.trace_id FROM sessions_app_trace trace JOIN arrived USING (trace_id)
    WHERE trace.project_id = %(project)b
      AND (arrived.key IS NULL OR (trace.id = arrived.key AND EXISTS (
          SELECT FROM sessions_app_spanbatch batch
          WHERE batch.trace_id = trace.id AND batch.digest = newest AND batch.received_at = newest_at)))
    ORDER BY trace.trace_id FOR UPDATE OF trace
), fresh AS (
    INSERT INTO sessions_app_trace AS trace
        (project_id, trace_id, batches_received, batches_assembled, span_count, said_bytes, changed_at, is_closed)
    SELECT %(project)b, trace_id, 1, 0, spans, said, %(now)b, false FROM arrived
    WHERE key IS NULL AND trace_id NOT IN (SELECT trace_id FROM here) ORDER BY trace_id
    ON CONFLICT (project_id, trace_id) DO NOTHING
    RETURNING {columns}
), added AS (
    INSERT INTO sessions_app_spanbatch (trace_id, digest, content, is_compressed, received_at)
    SELECT known.id, digest, content, packed, %(now)b
    FROM arrived JOIN (SELECT id, trace_id FROM here UNION ALL SELECT id, trace_id FROM fresh) known USING (trace_id)
    ON CONFLICT (trace_id, digest) DO NOTHING
    RETURNING trace_id AS id
), grown AS (
    UPDATE sessions_app_trace trace
    SET batches_received = batches_received + 1, span_count = span_count + spans,
        said_bytes = trace.said_bytes + said, changed_at = %(now)b
    FROM arrived JOIN here USING (trace_id) JOIN added USING (id)
    WHERE trace.id = here.id
    RETURNING {columns}
)
SELECT here.trace_id AS found, grown.* FROM here LEFT JOIN grown USING (id)
UNION ALL SELECT trace_id, fresh.* FROM fresh
""".replace("{columns}", ", ".join(f"trace.{name}" for name in _TRACE))


def _add(project: Project, rows: Mapping[str, Any]) -> dict[str, Trace | None]:
    """By trace id: the traces that got something new, and None for those that had this batch before, which counts once.

    A trace is not among them when it is not the one of which pieces were remembered, because it was deleted or put back
    to an earlier state, or when somebody else brought the first batch of it at this moment: nothing was stored of it.
    """
    with binary_cursor() as cursor:
        cursor.execute(_ADD, {"project": project.pk, "now": timezone.now(), **rows})
        answer = cursor.fetchall()
    traces = {}
    for trace_id, key, *values in answer:
        traces[trace_id] = None if key is None else Trace.from_db(connection.alias, _TRACE, [key, *values])
        if trace := traces[trace_id]:
            trace.project = project
    return traces


def _remember(project: Project, arrivals: Sequence[Arrival], traces: Mapping[str, Trace | None]) -> None:
    """What is committed. Of a trace that came whole nothing more is expected."""
    for arrival in arrivals:
        trace = traces.get(arrival.trace_id)
        if trace is not None and not arrival.is_whole:
            newest = Newest(trace.batches_received, arrival.digest, received_at=trace.changed_at)
            _KNOWN.add(project.pk, arrival.trace_id, trace=trace.pk, newest=newest, pieces=arrival.batch.pieces)
