"""The spans of a trace, redacted once more: all of them as one batch, and its run made anew."""

from __future__ import annotations

from sessions_app.core.spans.batch import read_batch
from sessions_app.core.spans.packing import Packer, Unpacker
from sessions_app.core.spans.span import LogRecord, Span
from sessions_app.mapping.payloads import doom
from sessions_app.models import Trace
from sessions_app.services.run_store import lock_trace
from sessions_app.services.span_store import store
from sessions_app.services.spans import Redact, arrival_of
from sessions_app.services.trace_runs import contents_of, join_calls, make_run


def redact_trace(trace: Trace) -> bool:
    """Whether something changed. Raises `SpansMissing` or `PayloadMissing`."""
    lock_trace(trace.project, trace.trace_id)
    contents, pieces = contents_of(trace)
    unpacker = Unpacker(pieces)
    spans: list[Span] = []
    logs: list[LogRecord] = []
    for content in contents:
        more_spans, more_logs = read_batch(content, trace.trace_id, unpacker, exact=True)
        spans += more_spans
        logs += more_logs
    redact = Redact(trace.project)
    arrival = arrival_of(trace.trace_id, spans, logs, Packer(redact, redact.is_secret))
    if not redact.has_hit:
        return False
    doom(trace.project_id, pieces.payloads)
    trace.batches.all().delete()
    Trace.objects.filter(pk=trace.pk).update(batches_received=0, batches_assembled=0, span_count=0, said_bytes=0)
    make_run(store(trace.project, [arrival])[trace.trace_id])
    join_calls(trace.project)  # the run that its spans are in may be another trace's
    return True
