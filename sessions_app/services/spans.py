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
from sessions_app.core.spans.span import LogRecord, Span
from sessions_app.mapping import payloads
from sessions_app.mapping.history_nodes import read_nodes, write_nodes
from sessions_app.models import Project, Trace
from sessions_app.payloads.compression import pack, unpack
from sessions_app.services.run_store import lock_name, store_assembled

logger = logging.getLogger(__name__)
_SMALL = 200
"""Spans. A trace up to here is made into a run again at each request that adds to it."""
_GROWTH = 10
"""A longer one when it grew by one part in so many; otherwise the sweeper does it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Arrival:
    """What one request brought of one trace."""

    trace_id: str
    batch: Batch
    span_count: int

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
    for arrival in arrivals:
        trace = traces.get(arrival.trace_id)
        if trace is not None and _is_due(trace, arrival):
            make_run(trace, just_stored=arrival.batch)


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
        )
        for trace_id in sorted({*spans_of, *logs_of})
    ]


class _Redact:
    """The project's redaction, as the packer asks for it."""

    def __init__(self, project: Project) -> None:
        self._redactor = Redactor(bytes(project.redaction_secret))
        self._names: dict[str, bool] = {}

    def __call__(self, content: bytes, is_json: bool) -> bytes:
        if is_json:
            return self._redactor.redact(content).content
        return self._redactor.redact_text(content.decode()).encode()

    def is_secret(self, name: str) -> bool:
        """Whether a value is a secret for the name of its attribute alone."""
        if name not in self._names:
            probe = compact_json({name: "a word"})
            self._names[name] = self._redactor.redact(probe).content != probe
        return self._names[name]


# --- storing -----------------------------------------------------------------------------------

_ADD_TRACES = """
INSERT INTO sessions_app_trace
    (project_id, trace_id, batches_received, batches_assembled, span_count, changed_at, is_closed)
SELECT %(project)s, trace_id, 0, 0, 0, %(now)s, false FROM unnest(%(traces)s::text[]) AS trace_id
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
    for arrival in arrivals:
        if keys[arrival.trace_id] in added:
            Trace.objects.filter(pk=keys[arrival.trace_id]).update(
                batches_received=F("batches_received") + 1, span_count=F("span_count") + arrival.span_count
            )
    return {trace.trace_id: trace for trace in Trace.objects.filter(pk__in=added).select_related("project")}


def _is_due(trace: Trace, arrival: _Arrival) -> bool:
    """Making a run anew costs what the whole trace costs, so a long one waits until it has grown enough."""
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
    contents, pieces = _contents(trace, just_stored if received == 1 else None)
    spans = _spans(trace.trace_id, contents, pieces, exact=False)
    if is_export(spans):
        # A run that was exported from here comes back to the letter.
        spans = _spans(trace.trace_id, contents, pieces, exact=True)
    if not spans:
        Trace.objects.filter(pk=trace.pk).update(batches_assembled=received, is_closed=is_closed)
        return
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


def make_waiting_runs(limit: int = 50) -> int:
    """For the sweeper: runs that wait to be made, and traces whose topmost span nobody waits for any more."""
    quiet = timezone.now() - timedelta(seconds=settings.OTLP_QUIET_SECONDS)
    waiting = Q(batches_assembled__lt=F("batches_received"), changed_at__lt=timezone.now() - timedelta(seconds=1))
    forgotten = Q(is_closed=False, changed_at__lt=quiet)
    traces = Trace.objects.filter(waiting | forgotten).select_related("project").order_by("changed_at")[:limit]
    for trace in traces:
        make_run(trace, close=trace.changed_at < quiet)
    return len(traces)
