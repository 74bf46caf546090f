"""A run is deleted for good, whatever is stored at the same moment."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection

from sessions_app.models import Project, Run, Session, SpanBatch, Trace
from sessions_app.services import run_store, trace_runs
from sessions_app.services.deletion import delete_run
from sessions_app.services.ingest import ingest_document
from sessions_app.services.spans import receive
from sessions_app.services.verification import problems
from tests.builders import make_project, make_record, make_tool_step
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db(transaction=True)
SPANS = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup").spans
A_MOMENT = 0.5
"""Seconds in which a deletion that waits for nobody has come to its end."""


def ingest(project: Project, run_id: str) -> Run:
    record = make_record(run_id, make_tool_step(), session_id="chat")
    return ingest_document(project, json.dumps(record).encode()).run


def deleted_while(work, run: Run, begun: Event, ended: Event) -> None:
    """`work` sets `begun` in its middle and waits there for `ended`, for a moment."""

    def delete() -> None:
        assert begun.wait(20)
        delete_run(Run.objects.get(pk=run.pk))
        ended.set()
        connection.close()

    def closing() -> None:
        work()
        connection.close()

    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(closing), pool.submit(delete)]:
            future.result()


def held(function, begun: Event, ended: Event):
    """The function; what is done behind it waits."""

    def holding(*arguments, **named):
        made = function(*arguments, **named)
        begun.set()
        ended.wait(A_MOMENT)
        return made

    return holding


def test_a_session_stays_for_a_run_that_arrives_while_its_only_one_is_deleted(monkeypatch):
    project, begun, ended = make_project(), Event(), Event()
    first = ingest(project, "first")
    monkeypatch.setattr(run_store, "_insert", held(run_store._insert, begun, ended))

    deleted_while(lambda: ingest(project, "second"), first, begun, ended)

    assert [str(run) for run in Run.objects.all()] == ["second"]
    assert [str(session) for session in Session.objects.all()] == ["chat"]
    assert not list(problems())


def test_a_run_that_late_spans_make_anew_does_not_come_back(monkeypatch):
    project, begun, ended = make_project(), Event(), Event()
    receive(project, SPANS[1:])
    run = Run.objects.get()
    monkeypatch.setattr(trace_runs, "assemble", held(trace_runs.assemble, begun, ended))

    deleted_while(lambda: receive(project, SPANS[:1]), run, begun, ended)

    assert not any(kind.objects.exists() for kind in (Run, Trace, SpanBatch))
    assert not list(problems())
