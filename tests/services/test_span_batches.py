"""Batches of a closed trace lie together, and come back to the letter."""

from __future__ import annotations

import pytest

from sessions_app.models import Project, Run, SpanBatch, Trace
from sessions_app.services import span_batches, trace_runs
from sessions_app.services.span_batches import compact, open_batches, read_batches
from sessions_app.services.spans import receive
from sessions_app.services.trace_runs import make_waiting_runs, spans_of
from sessions_app.services.verification import problems
from tests.builders import make_project
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db
ORDER = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup")


@pytest.fixture
def project() -> Project:
    return make_project()


def sent_one_by_one(project: Project) -> Trace:
    """The topmost span last, which closes the trace."""
    spans = sorted(ORDER.spans, key=lambda span: span.end_ns or 0)
    for span in spans:
        receive(project, [span])
    make_waiting_runs()
    return Trace.objects.get()


def holders(trace: Trace) -> list[int | None]:
    return list(trace.batches.order_by("pk").values_list("holder", flat=True))


def test_an_open_trace_keeps_each_by_itself(project):
    for span in ORDER.spans[1:]:
        receive(project, [span])
    make_waiting_runs()

    trace = Trace.objects.get()
    assert not trace.is_closed
    assert set(holders(trace)) == {None}


def test_those_of_a_closed_trace_lie_in_the_first_of_them(project, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(trace_runs, "compact", lambda trace: None)
        trace = sent_one_by_one(project)
    loose, spans = read_batches(trace), spans_of(trace)
    taken = sum(len(bytes(batch.content)) for batch in trace.batches.all())
    digest = Run.objects.get().content_digest

    compact(trace)

    first = trace.batches.order_by("pk")[0]
    assert set(holders(trace)) == {first.pk}
    assert [len(bytes(batch.content)) > 0 for batch in trace.batches.order_by("pk")] == [
        True,
        *[False] * (len(loose) - 1),
    ]
    assert sum(len(bytes(batch.content)) for batch in trace.batches.all()) < taken
    assert (sorted(read_batches(trace)), spans_of(trace)) == (sorted(loose), spans)
    assert list(problems()) == []
    assert Run.objects.get().content_digest == digest


def test_the_last_span_of_a_trace_closes_it(project):
    trace = sent_one_by_one(project)

    assert trace.is_closed
    assert set(holders(trace)) == {trace.batches.order_by("pk")[0].pk}


def test_what_comes_late_or_again_counts_as_ever(project):
    trace = sent_one_by_one(project)
    before = SpanBatch.objects.count()

    receive(project, [ORDER.spans[1]])
    assert SpanBatch.objects.count() == before
    receive(project, ORDER.spans[1:3])
    make_waiting_runs()

    assert holders(trace)[-1] is None
    assert spans_of(trace) == sorted(ORDER.spans, key=lambda span: span.span_id)
    assert list(problems()) == []


def test_long_traces_lie_in_several(project, monkeypatch):
    monkeypatch.setattr(span_batches, "_TOGETHER", 12_000)

    trace = sent_one_by_one(project)

    assert len(set(holders(trace))) > 1
    assert spans_of(trace) == sorted(ORDER.spans, key=lambda span: span.span_id)


def test_damage_is_named_by_every_batch_that_it_reaches(project):
    trace = sent_one_by_one(project)
    SpanBatch.objects.filter(pk=holders(trace)[0] or 0).update(content=b"no zstd")

    assert [content for _, content in open_batches(trace.batches.all())] == [None] * trace.batches.count()
    assert len([each for each in problems() if "do not match their digest" in each]) == trace.batches.count()
