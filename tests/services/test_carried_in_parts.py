"""Traces that come in parts: each batch carries what those before it do not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from django.db import connection, transaction

from sessions_app.core.formats.native import encode_native
from sessions_app.core.spans.common import CommonPieces
from sessions_app.core.spans.known import KnownTraces
from sessions_app.core.spans.span import Span
from sessions_app.mapping.load import load_run
from sessions_app.models import HistoryNode, Project, Run, SpanBatch, StoredPayload, Trace
from sessions_app.services import span_store
from sessions_app.services.spans import receive
from sessions_app.services.trace_runs import make_waiting_runs, spans_of
from sessions_app.services.verification import problems
from tests.builders import make_project
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db(transaction=True)
ORDER = sorted(Capture(CHOICE / "pydantic-ai-v5" / "order_lookup").spans, key=lambda span: -len(str(span.attributes)))
"""The span that has most comes first."""


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch):
    monkeypatch.setattr(span_store, "_COMMON", CommonPieces(1_000))
    monkeypatch.setattr(span_store, "_KNOWN", KnownTraces(10_000))
    monkeypatch.setattr("sessions_app.services.spans.wake_for_spans", lambda: None)


def send(project: Project, spans: Sequence[Span]) -> None:
    """Each by itself, and no run yet."""
    for span in spans:
        receive(project, [span], others_wait=lambda: True)


def stored(project: Project) -> bytes:
    make_waiting_runs()
    return encode_native(load_run(Run.objects.get(project=project)))


def batch_bytes() -> int:
    return sum(len(bytes(batch.content)) for batch in SpanBatch.objects.all())


def forgetting(monkeypatch):
    monkeypatch.setattr(span_store, "_KNOWN", KnownTraces(0))


def test_parts_make_the_same_run_and_take_no_rows():
    parts, whole = make_project("parts"), make_project("whole")
    send(parts, ORDER[::-1])

    assert (HistoryNode.objects.count(), StoredPayload.objects.count()) == (0, 0)
    assert list(problems()) == []
    receive(whole, ORDER, others_wait=lambda: True)
    make_waiting_runs()
    assert stored(parts) == stored(whole)


def test_pieces_are_carried_once(monkeypatch):
    send(make_project("remembering"), ORDER)
    once = batch_bytes()
    forgetting(monkeypatch)
    send(make_project("forgetting"), ORDER)

    assert once < 0.9 * (batch_bytes() - once)


def test_a_server_that_forgot_goes_on_where_another_was(monkeypatch):
    project, half = make_project(), len(ORDER) // 2
    send(project, ORDER[:half])
    monkeypatch.setattr(span_store, "_KNOWN", KnownTraces(10_000))
    send(project, ORDER[half:])

    assert list(problems()) == []
    assert sorted(span.span_id for span in spans_of(Trace.objects.get())) == sorted(span.span_id for span in ORDER)


def test_what_was_not_committed_is_not_remembered():
    project = make_project()
    with transaction.atomic():
        send(project, ORDER[:-1])
        transaction.set_rollback(True)
    send(project, ORDER[-1:])

    assert len(spans_of(Trace.objects.get())) == 1
    assert list(problems()) == []


def deleted(trace: Trace) -> None:
    trace.delete()


def put_back(trace: Trace) -> None:
    """As a database from a backup."""
    trace.batches.all().delete()
    Trace.objects.update(batches_received=0)


@pytest.mark.parametrize("lose", [deleted, put_back])
def test_a_trace_that_lost_its_batches_gets_whole_ones(lose, monkeypatch):
    project = make_project()
    send(project, ORDER)
    lose(Trace.objects.get())
    send(project, ORDER[:1])
    assert len(spans_of(Trace.objects.get())) == 1
    assert list(problems()) == []

    # Without the check it would name pieces that are gone.
    unchecked = re.sub(r"trace.id = arrived.key AND EXISTS \(.*?newest_at\)", "true", span_store._ADD, flags=re.DOTALL)
    assert unchecked != span_store._ADD
    monkeypatch.setattr(span_store, "_ADD", unchecked.replace("key IS NULL AND", ""))
    lose(Trace.objects.get())
    send(project, ORDER[:1])
    assert any("refer to" in problem for problem in problems())


@pytest.mark.parametrize("lose", [deleted, put_back])
def test_what_was_lost_is_not_remembered_when_as_much_has_come_again(lose):
    project, others = make_project(), [replace(span, attributes={}) for span in ORDER]
    send(project, ORDER)
    lose(Trace.objects.get())
    send(project, others)
    send(project, ORDER)

    trace = Trace.objects.get()
    assert trace.batches_received == 2 * len(ORDER)
    assert len(spans_of(trace)) == len(ORDER)
    assert list(problems()) == []


def test_a_batch_of_another_server_does_not_stand_for_one_that_was_lost(monkeypatch):
    """As many batches as before, the newest of them among them, but it came again and anew."""
    project, ours = make_project(), span_store._KNOWN
    send(project, ORDER)
    put_back(Trace.objects.get())
    monkeypatch.setattr(span_store, "_KNOWN", KnownTraces(10_000))
    send(project, [replace(span, attributes={}) for span in ORDER])
    send(project, ORDER[-1:])
    monkeypatch.setattr(span_store, "_KNOWN", ours)
    send(project, ORDER[:1])

    assert list(problems()) == []
    assert len(spans_of(Trace.objects.get())) == len(ORDER)


def test_a_batch_that_is_gone_is_named_by_those_that_need_it():
    send(make_project(), ORDER)
    before = list(problems())
    SpanBatch.objects.order_by("pk").first().delete()

    assert before == []
    assert any("which is not stored" in problem for problem in problems())


def test_rows_of_a_first_batch_serve_those_that_come_later(monkeypatch):
    """Of a trace that is not known a batch with too much writes rows; later ones name them."""
    monkeypatch.setattr(span_store, "FEW", 0)
    parts, whole = make_project("parts"), make_project("whole")
    send(parts, ORDER)
    rows = HistoryNode.objects.count(), StoredPayload.objects.count()
    forgetting(monkeypatch)
    send(whole, ORDER)

    assert 0 < rows[0] < HistoryNode.objects.filter(project=whole).count()
    assert list(problems()) == []
    assert stored(parts) == stored(whole)


def test_what_comes_at_once_and_twice_counts_once():
    project, each_twice = make_project(), [*ORDER, *ORDER]
    start = Barrier(len(each_twice))

    def receive_one(span: Span) -> None:
        start.wait()
        try:
            receive(project, [span], others_wait=lambda: True)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(each_twice)) as threads:
        list(threads.map(receive_one, each_twice))

    trace = Trace.objects.get()
    counted = trace.batches_received, trace.span_count, SpanBatch.objects.count(), len(spans_of(trace))
    assert counted == (len(ORDER),) * 4
    assert list(problems()) == []
