"""Batches in the database that carry their pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sessions_app.core.formats.native import encode_native
from sessions_app.core.spans.common import CommonPieces
from sessions_app.mapping.load import load_run
from sessions_app.models import HistoryNode, Project, Run, SpanBatch, StoredPayload
from sessions_app.payloads.compression import pack, unpack
from sessions_app.services import span_store as service
from sessions_app.services.spans import receive
from sessions_app.services.trace_runs import make_waiting_runs, spans_of
from sessions_app.services.verification import problems
from tests.builders import make_project
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db
ORDER = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup")


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch):
    """What other tests sent is not common here."""
    monkeypatch.setattr(service, "_COMMON", CommonPieces(1_000))


def rows() -> tuple[int, int]:
    return HistoryNode.objects.count(), StoredPayload.objects.count()


def stored(project: Project) -> bytes:
    return encode_native(load_run(Run.objects.get(project=project)))


def in_parts(project: Project) -> None:
    """Each span by itself, and no run before the last."""
    for span in reversed(ORDER.spans):
        receive(project, [span], others_wait=lambda: True)
    make_waiting_runs()


def test_a_short_trace_takes_no_rows_beside_its_batch():
    receive(make_project(), ORDER.spans, others_wait=lambda: True)

    assert rows() == (0, 0)
    assert spans_of(SpanBatch.objects.get().trace) != []


def test_what_another_trace_had_is_a_row_that_both_name():
    project = make_project()
    receive(project, ORDER.spans, others_wait=lambda: True)
    others = [[replace(span, trace_id=letter * 32) for span in ORDER.spans] for letter in "ab"]
    receive(project, others[0], others_wait=lambda: True)
    after_two = rows()
    receive(project, others[1], others_wait=lambda: True)

    assert after_two[1] > 0
    assert rows() == after_two
    make_waiting_runs()
    first, second, third = (load_run(run) for run in Run.objects.order_by("pk"))
    assert [step.call for step in first.steps] == [step.call for step in second.steps]
    assert [step.call for step in first.steps] == [step.call for step in third.steps]
    assert list(problems()) == []


@pytest.mark.parametrize("send", [in_parts, lambda project: receive(project, ORDER.spans)], ids=["parts", "whole"])
def test_what_is_carried_makes_the_same_run(send, monkeypatch):
    carrying, other = make_project("carrying"), make_project("other")
    send(carrying)
    monkeypatch.setattr(service, "FEW", 0)
    monkeypatch.setattr(service, "MANY", 0)
    before = rows()
    send(other)

    assert rows()[0] > before[0]
    assert stored(carrying) == stored(other)
    assert list(problems()) == []


def test_a_batch_that_came_twice_in_two_forms_is_one(monkeypatch):
    project = make_project()
    receive(project, ORDER.spans)
    monkeypatch.setattr(service, "MANY", 0)
    receive(project, ORDER.spans)

    assert SpanBatch.objects.count() == 1


@pytest.mark.parametrize(
    ("was", "now"), [(b"kettle", b"kittle"), (b'"pieces":[', b'"pieces":[1'), (b'"cut"', b'"kut"')]
)
def test_a_changed_byte_is_named(was, now):
    receive(make_project(), ORDER.spans)
    batch = SpanBatch.objects.get()
    content = unpack(bytes(batch.content), is_compressed=batch.is_compressed)
    changed = content.replace(was, now, 1)
    assert changed != content
    packed = pack(changed)
    SpanBatch.objects.update(content=packed.data, is_compressed=packed.is_compressed)

    assert any("do not match their digest" in problem for problem in problems())
