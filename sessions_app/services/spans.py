"""Taking in spans: redact, pack, store; then make a run of each trace.

Storing is one transaction and what the sender gets its answer for. Making the run comes after it in transactions of
their own: what fails there, or is cut off by a crash, is done again by the sweeper.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from sessions_app.core.assembly.run import assemble
from sessions_app.core.errors import RunConflict
from sessions_app.core.otlp_export.restore import is_export
from sessions_app.core.payload import compact_json, sha256_hex
from sessions_app.core.redaction import Redactor
from sessions_app.core.spans.batch import Batch, read_batch, references_of, write_batch
from sessions_app.core.spans.merging import merge
from sessions_app.core.spans.packing import Packer, Pieces, Unpacker
from sessions_app.core.spans.remembered import RememberedPieces, key_of
from sessions_app.core.spans.shared_values import shared_values
from sessions_app.core.spans.span import LogRecord, Span
from sessions_app.mapping import payloads
from sessions_app.mapping.history_nodes import read_nodes, write_nodes
from sessions_app.models import Project, Trace
from sessions_app.payloads.compression import pack, unpack
from sessions_app.services.run_store import lock_name, store_assembled
from sessions_app.services.wakeups import wake_for_spans

logger = logging.getLogger(__name__)
_SMALL = 200
"""Spans. A trace up to here is made into a run again at each request that brings its end or comes later."""
_GROWTH = 10
"""A longer one when it grew by one part in so many; otherwise the sweeper does it."""
_AT_ONCE = 2_000
"""Spans of traces that one request makes runs of while its sender waits; a worker makes the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Arrival:
    """What one request brought of one trace."""

    trace_id: str
    batch: Batch
    span_count: int
    has_end: bool
    """Whether a topmost span that ended is among them."""

    @property
    def digest(self) -> str:
        return sha256_hex(self.batch.content)


def receive(project: Project, spans: Sequence[Span], logs: Sequence[LogRecord] = ()) -> None:
    """Store spans and log records. Log records that name no trace are not kept.

    Raises `RedactionFailed`; nothing is stored then.
    """
    arrivals = _arrivals(project, spans, logs)
    with transaction.atomic():
        traces = _store(project, arrivals)
    left = _AT_ONCE
    for arrival in arrivals:
        trace = traces.get(arrival.trace_id)
        if trace is not None and left > 0 and _is_due(trace, arrival):
            left -= trace.span_count
            make_run(trace, just_stored=arrival.batch)
    if left <= 0:
        wake_for_spans()


def _arrivals(project: Project, spans: Sequence[Span], logs: Sequence[LogRecord]) -> list[_Arrival]:
    redact = _Redact(project)
    spans_of, logs_of = defaultdict(list), defaultdict(list)
    for span in spans:
        spans_of[span.trace_id].append(span)
    for log in logs:
        if log.trace_id is not None:
            logs_of[log.trace_id].append(log)
    return [
        _Arrival(
            trace_id=trace_id,
            batch=write_batch(spans_of[trace_id], logs_of[trace_id], Packer(redact, redact.is_secret)),
            span_count=len(spans_of[trace_id]),
            has_end=any(span.parent_id is None and span.end_ns for span in spans_of[trace_id]),
        )
        for trace_id in sorted({*spans_of, *logs_of})
    ]


_REMEMBERED = RememberedPieces(16 * 1024 * 1024)


class _Redact:
    """The project's redaction, as the packer asks for it."""

    def __init__(self, project: Project) -> None:
        self._secret = bytes(project.redaction_secret)
        self._redactor = Redactor(self._secret)

    def __call__(self, content: bytes, is_json: bool) -> bytes:
        key = key_of(self._secret, content, is_json=is_json)
        known = _REMEMBERED.get(key)
        if known is None:
            known = self._redacted(content, is_json)
            _REMEMBERED.put(key, known)
        return known

    def _redacted(self, content: bytes, is_json: bool) -> bytes:
        if is_json:
            return self._redactor.redact(content).content
        return self._redactor.redact_text(content.decode()).encode()

    def is_secret(self, name: str) -> bool:
        return _is_secret(name) if len(name) <= _LONGEST_NAME else _is_secret.__wrapped__(name)


_LONGEST_NAME = 200
"""Characters; longer names are not remembered."""


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    """Whether a value is a secret for the name of its attribute alone."""
    probe = compact_json({name: "a word"})
    return Redactor(b"any").redact(probe).content != probe


# --- storing -----------------------------------------------------------------------------------

_ADD_TRACES = """
INSERT INTO sessions_app_trace
    (project_id, trace_id, batches_received, batches_assembled, span_count, said_bytes, changed_at, is_closed)
SELECT %(project)s, trace_id, 0, 0, 0, 0, %(now)s, false FROM unnest(%(traces)s::text[]) AS trace_id
ON CONFLICT (project_id, trace_id) DO UPDATE SET changed_at = EXCLUDED.changed_at
RETURNING trace_id, id
"""
_ADD_BATCHES = """
INSERT INTO sessions_app_spanbatch (trace_id, digest, content, is_compressed, received_at)
SELECT row.*, %(now)s
FROM unnest(%(traces)s::bigint[], %(digests)s::bytea[], %(contents)s::bytea[], %(packed)s::bool[]) AS row
ON CONFLICT (trace_id, digest) DO NOTHING
RETURNING trace_id
"""

_COUNT_BATCHES = """
UPDATE sessions_app_trace trace
SET batches_received = batches_received + 1, span_count = span_count + row.spans,
    said_bytes = trace.said_bytes + row.said
FROM unnest(%(traces)s::bigint[], %(spans)s::int[], %(said)s::bigint[]) AS row(id, spans, said)
WHERE trace.id = row.id
"""


def _store(project: Project, arrivals: list[_Arrival]) -> dict[str, Trace]:
    """The traces that got something new, by trace id."""
    pieces = Pieces()
    for arrival in arrivals:
        pieces.add(arrival.batch.pieces)
    payloads.write_many(project.pk, pieces.payloads)
    write_nodes(project.pk, pieces.nodes)
    now = timezone.now()
    with connection.cursor() as cursor:
        wanted = [arrival.trace_id for arrival in arrivals]
        cursor.execute(_ADD_TRACES, {"project": project.pk, "now": now, "traces": wanted})
        keys = dict(cursor.fetchall())
        packed = [pack(arrival.batch.content) for arrival in arrivals]
        cursor.execute(
            _ADD_BATCHES,
            {
                "now": now,
                "traces": [keys[arrival.trace_id] for arrival in arrivals],
                "digests": [bytes.fromhex(arrival.digest) for arrival in arrivals],
                "contents": [each.data for each in packed],
                "packed": [each.is_compressed for each in packed],
            },
        )
        added = {key for (key,) in cursor.fetchall()}
        new = [arrival for arrival in arrivals if keys[arrival.trace_id] in added]
        counts = {
            "traces": [keys[each.trace_id] for each in new],
            "spans": [each.span_count for each in new],
            "said": [each.batch.said_bytes for each in new],
        }
        cursor.execute(_COUNT_BATCHES, counts)
    return {trace.trace_id: trace for trace in Trace.objects.filter(pk__in=added).select_related("project")}


def _is_due(trace: Trace, arrival: _Arrival) -> bool:
    """Making a run anew costs what the whole trace costs. One that is under way is made when it begins and when it
    ends, and by the sweeper in between; a long one waits until it has grown enough."""
    if trace.batches_received > 1 and not arrival.has_end and not trace.is_closed:
        return False
    return trace.span_count <= _SMALL or arrival.span_count * _GROWTH >= trace.span_count


# --- making runs -------------------------------------------------------------------------------


def make_run(trace: Trace, *, just_stored: Batch | None = None, close: bool = False) -> None:
    """Make the run of a trace, or make it again. Whatever goes wrong is noted on the trace; the spans are kept."""
    try:
        with transaction.atomic():
            _make_run(trace, just_stored, close)
    except DatabaseError as error:
        logger.warning("The run of a trace waits for the sweeper: %s", type(error).__name__)
    except Exception as error:
        # Its text may quote what was recorded.
        logger.exception("No run could be made of trace %s: %s", trace.trace_id, type(error).__name__, exc_info=False)
        words = "another recording has this id" if isinstance(error, RunConflict) else type(error).__name__
        Trace.objects.filter(pk=trace.pk).update(batches_assembled=F("batches_received"), is_closed=True, problem=words)


def _make_run(trace: Trace, just_stored: Batch | None, close: bool) -> None:
    lock_name(trace.project, f"trace {trace.trace_id}")
    trace.refresh_from_db()
    received, is_closed = trace.batches_received, trace.is_closed or close
    if trace.batches_assembled == received and is_closed == trace.is_closed:
        return  # somebody else was faster
    contents, pieces = _contents(trace, just_stored if received == 1 else None)
    spans = _spans(trace.trace_id, contents, pieces, exact=False)
    if is_export(spans):
        # A run that was exported from here comes back to the letter.
        spans = _spans(trace.trace_id, contents, pieces, exact=True)
    if not spans:
        Trace.objects.filter(pk=trace.pk).update(batches_assembled=received, is_closed=is_closed)
        return
    with shared_values():
        run = assemble(spans, is_closed=is_closed)
    source = compact_json({"trace_id": trace.trace_id, "batches": sorted(map(sha256_hex, contents))})
    row = store_assembled(trace.project, run, source=source)
    Trace.objects.filter(pk=trace.pk).update(
        run=row, batches_assembled=received, is_closed=is_closed or run.status != "running", problem=None
    )


def _contents(trace: Trace, just_stored: Batch | None) -> tuple[list[bytes], Pieces]:
    """All batches of a trace with what they refer to."""
    if just_stored is not None:
        return [just_stored.content], just_stored.pieces
    rows = trace.batches.order_by("digest").values_list("content", "is_compressed")
    contents = [unpack(bytes(content), is_compressed=packed) for content, packed in rows]
    return contents, _pieces(trace.project_id, contents)


def _pieces(project_id: int, contents: Iterable[bytes]) -> Pieces:
    nodes, wanted = set(), set()
    for content in contents:
        heads, digests = references_of(content)
        nodes.update(heads)
        wanted.update(digests)
    links = read_nodes(project_id, nodes)
    wanted.update(element for _, element in links.values())
    return Pieces(payloads=payloads.read_many(project_id, wanted), nodes=links)


def _spans(trace_id: str, contents: list[bytes], pieces: Pieces, *, exact: bool) -> list[Span]:
    unpacker = Unpacker(pieces)
    spans: list[Span] = []
    logs: list[LogRecord] = []
    for content in contents:
        more_spans, more_logs = read_batch(content, trace_id, unpacker, exact=exact)
        spans += more_spans
        logs += more_logs
    return merge(spans, logs)


def spans_of(trace: Trace) -> list[Span]:
    """The spans of a trace as they arrived, after redaction, with every text to the letter."""
    contents, pieces = _contents(trace, None)
    return _spans(trace.trace_id, contents, pieces, exact=True)


# --- what was left -----------------------------------------------------------------------------


def make_waiting_runs() -> int:
    """Make the runs that wait for it, and end those whose topmost span nobody waits for any more; how many."""
    quiet = timezone.now() - timedelta(seconds=settings.OTLP_QUIET_SECONDS)
    waiting = Q(batches_assembled__lt=F("batches_received")) | Q(is_closed=False, changed_at__lt=quiet)
    keys = Trace.objects.filter(waiting).order_by("changed_at").values_list("pk", flat=True)[:_A_SWEEP]
    for key in keys:
        trace = Trace.objects.select_related("project").get(pk=key)
        make_run(trace, close=trace.changed_at < quiet)
    return len(keys)


_A_SWEEP = 1_000
"""Traces that are taken up at a time; the next round comes soon."""
