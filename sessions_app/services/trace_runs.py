"""Making a run of the spans of a trace that are there, and making it again when more come.

What fails here, or is cut off by a crash, is done again by a worker.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.utils import timezone

from sessions_app import models
from sessions_app.core.assembly.lone_calls import lone_call
from sessions_app.core.assembly.run import assemble
from sessions_app.core.errors import PayloadMissing, RunConflict
from sessions_app.core.otlp_export.restore import is_export
from sessions_app.core.run import Run
from sessions_app.core.shared_values import shared_values
from sessions_app.core.spans.batch import Batch, read_batch
from sessions_app.core.spans.carried import apart, lacking
from sessions_app.core.spans.merging import merge
from sessions_app.core.spans.packing import Pieces, Unpacker
from sessions_app.core.spans.span import LogRecord, Span
from sessions_app.mapping import payloads
from sessions_app.mapping.history_nodes import read_nodes
from sessions_app.models import LoneCall, Project, Trace
from sessions_app.models.traces import IS_BEHIND, WANTED
from sessions_app.services.lone_calls import note, settle, unsettle_told_again
from sessions_app.services.run_store import lock_name, lock_trace, store_assembled
from sessions_app.services.span_batches import compact, read_batches

logger = logging.getLogger(__name__)
_Row = TypeVar("_Row", bound=Model)
_A_SWEEP = 100
"""Traces that are taken up at a time; the next round comes soon."""


def make_run(
    trace: Trace, *, just_stored: Batch | None = None, quiet_since: datetime | None = None, waits: bool = True
) -> bool:
    """Make the run of a trace, or make it again. Whatever goes wrong is noted on the trace; the spans are kept.

    False when the database or the disk could not do it now, so that the trace still waits; also when somebody else is
    at it and `waits` is not set. Of a trace to which nothing was added since `quiet_since` nobody waits for the topmost
    span any more.
    """
    try:
        with transaction.atomic():
            if not lock_trace(trace.project, trace.trace_id, waits=waits):
                return False
            run = _make_run(trace, just_stored, quiet_since)
        if run is not None:
            unsettle_told_again(trace, run)
    except (DatabaseError, OSError) as error:
        logger.warning("The run of a trace waits for the next round: %s", type(error).__name__)
        return False
    except Exception as error:
        # Its text may quote what was recorded.
        logger.exception("No run could be made of trace %s: %s", trace.trace_id, type(error).__name__, exc_info=False)
        words = "another recording has this id" if isinstance(error, RunConflict) else type(error).__name__
        # As many as it was tried with: more may have come meanwhile.
        tried = trace.batches_received
        Trace.objects.filter(pk=trace.pk).update(batches_assembled=tried, is_closed=True, problem=words)
    return True


def join_calls(project: Project, *, longest: int | None = None) -> bool:
    """Settle the calls of models that wait for it, and make the runs that this changes. False where runs of more traces
    than `longest` are left to a worker."""
    are_all_made = True
    while traces := settle(project):
        for trace in traces:
            trace.project = project
            if longest is None or trace.others.count() < longest:
                make_run(trace)
            else:
                are_all_made = False
    return are_all_made


def _make_run(trace: Trace, just_stored: Batch | None, quiet_since: datetime | None) -> Run | None:
    """The run; None where none was made now."""
    trace.refresh_from_db(fields=["batches_received", "batches_assembled", "changed_at", "is_closed", "run", "joined"])
    received, is_wanted = trace.batches_received, trace.batches_assembled == WANTED
    is_closed = trace.is_closed or (quiet_since is not None and trace.changed_at < quiet_since)
    if trace.batches_assembled == received and is_closed == trace.is_closed:
        return None  # somebody else was faster
    spans = _read_spans([trace], just_stored if received == 1 and not is_wanted else None)
    is_lone = not is_wanted and note(trace, lone_call(spans))
    if not spans or is_lone or trace.joined_id is not None:
        Trace.objects.filter(pk=trace.pk).update(batches_assembled=received, is_closed=is_closed or is_lone)
        return None
    if others := _others(trace):
        spans += _read_spans(others)
    with shared_values():
        run = assemble(spans, is_closed=is_closed)
    row, is_over = _stored(trace, run), is_closed or run.status != "running"
    Trace.objects.filter(pk=trace.pk).update(run=row, batches_assembled=received, is_closed=is_over, problem=None)
    if is_over and received > 1:
        compact(trace)
    return run


def _others(trace: Trace) -> list[Trace]:
    return list(trace.others.prefetch_related("batches").order_by("pk"))


def _read_spans(traces: Sequence[Trace], just_stored: Batch | None = None) -> list[Span]:
    contents, pieces = _contents(traces, just_stored)
    spans = _spans(contents, pieces, exact=False)
    # A run that was exported from here comes back to the letter.
    return _spans(contents, pieces, exact=True) if is_export(spans) else spans


def _stored(trace: Trace, run: Run) -> models.Run:
    """The run under the id that its spans give it; under the trace's own where another run has that one."""
    if run.run_id != trace.trace_id:
        lock_name(trace.project, run.run_id)
        keys = models.Run.objects.filter(project=trace.project, run_id=run.run_id).values_list("pk", flat=True)
        run = _under_trace_id(trace, run) if set(keys) - {trace.run_id} else run
    return store_assembled(trace.project, run, source=None, made_before=trace.run_id)


def _under_trace_id(trace: Trace, run: Run) -> Run:
    said = {**run.extra["trace"], "run_id_of_another_run": run.run_id}
    session_id = trace.trace_id if run.session_id == run.run_id else run.session_id
    return replace(run, run_id=trace.trace_id, session_id=session_id, extra={**run.extra, "trace": said})


_Contents = list[tuple[str, list[bytes]]]
"""The batches of each trace, by its id."""


def _contents(traces: Sequence[Trace], just_stored: Batch | None) -> tuple[_Contents, Pieces]:
    """All batches of traces of one project with what they refer to."""
    if just_stored is not None:
        return [(traces[0].trace_id, [just_stored.content])], just_stored.pieces
    found: _Contents = []
    pieces = Pieces()
    for trace in traces:
        batches = [apart(content) for content in read_batches(trace)]
        found.append((trace.trace_id, [content for content, _ in batches]))
        for _, carried in batches:
            pieces.add(carried)
    return found, _with_stored(traces[0].project_id, [each for _, own in found for each in own], pieces)


def _with_stored(project_id: int, contents: Iterable[bytes], carried: Pieces) -> Pieces:
    """What the batches carried, with what they refer to beside it. Raises `PayloadMissing`."""
    heads, wanted = lacking(contents, carried)
    links = carried.nodes | read_nodes(project_id, heads)
    wanted.update(element for _, element in links.values())
    beside = payloads.read_many(project_id, wanted - carried.payloads.keys())
    found = Pieces(payloads=carried.payloads | beside, nodes=links)
    if missing := heads - found.nodes.keys() | wanted - found.payloads.keys():
        raise PayloadMissing(min(missing))
    return found


def _spans(contents: _Contents, pieces: Pieces, *, exact: bool) -> list[Span]:
    unpacker = Unpacker(pieces)
    return [span for trace_id, own in contents for span in _spans_of_trace(trace_id, own, unpacker, exact=exact)]


def _spans_of_trace(trace_id: str, contents: list[bytes], unpacker: Unpacker, *, exact: bool) -> list[Span]:
    spans: list[Span] = []
    logs: list[LogRecord] = []
    for content in contents:
        more_spans, more_logs = read_batch(content, trace_id, unpacker, exact=exact)
        spans += more_spans
        logs += more_logs
    return merge(spans, logs)


def contents_of(trace: Trace) -> tuple[list[bytes], Pieces]:
    """Its batches, and what they refer to."""
    [(_, contents)], pieces = _contents([trace], None)
    return contents, pieces


def spans_of(trace: Trace) -> list[Span]:
    """The spans of a trace, and of those that joined it, as they arrived, after redaction, with every text to the
    letter."""
    contents, pieces = _contents([trace, *_others(trace)], None)
    return _spans(contents, pieces, exact=True)


# --- what was left -----------------------------------------------------------------------------


def make_waiting_runs() -> int:
    """Make the runs that wait for it, and end those whose topmost span nobody waits for any more; how many.

    Several processes share this work: each takes the traces in an order of its own, and none that another is at.
    """
    quiet = timezone.now() - timedelta(seconds=settings.OTLP_QUIET_SECONDS)
    waiting = IS_BEHIND | Q(is_closed=False, changed_at__lt=quiet)
    traces = list(Trace.objects.filter(waiting).select_related("project").order_by("changed_at")[:_A_SWEEP])
    random.shuffle(traces)
    made = sum(make_run(trace, quiet_since=quiet, waits=False) for trace in traces)
    for project in Project.objects.filter(Exists(LoneCall.objects.filter(project=OuterRef("pk"), is_settled=False))):
        join_calls(project)
    return made


def first_or_made(asked: QuerySet[_Row], project: Project, trace_id: str) -> _Row | None:
    """The row that is asked for, after the run of this trace was made: where it is not there yet, and where it was
    under way and more has come."""
    found = asked.first()
    is_settled = found is not None and getattr(found, "status", None) != "running"
    if not is_settled and make_asked_runs([project.pk], [trace_id]):
        found = asked.first()
    return found


_SOON_MADE = 200
"""Spans. Whoever asks for a run that is there already does not wait for a longer one to be made again."""


def make_asked_runs(project_ids: Iterable[int], trace_ids: Iterable[str]) -> bool:
    """Somebody looks for these: make the runs of those that wait for it; whether there were such."""
    is_soon_made = Q(run=None) | Q(span_count__lte=_SOON_MADE)
    asked = Trace.objects.filter(IS_BEHIND, is_soon_made, project__in=project_ids, trace_id__in=trace_ids)
    traces = list(asked.select_related("project"))
    for trace in traces:
        make_run(trace)
    for project in {trace.project for trace in traces}:
        join_calls(project)
    return bool(traces)
