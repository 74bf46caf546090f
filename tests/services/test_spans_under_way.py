"""A trace that is under way is made into a run when it begins and when it ends, and in between by the sweeper."""

from __future__ import annotations

import pytest

from sessions_app.models import Run, Trace
from sessions_app.services import trace_runs
from sessions_app.services.spans import receive
from sessions_app.services.trace_runs import make_waiting_runs
from tests.builders import make_project
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db
ORDER = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup")
TOP = [span for span in ORDER.spans if span.parent_id is None]
INNER = [span for span in ORDER.spans if span.parent_id is not None]


def made_of() -> tuple[int, int]:
    trace = Trace.objects.get()
    return trace.batches_assembled, trace.batches_received


def test_spans_that_trickle_in_wait_for_the_sweeper():
    project = make_project()

    receive(project, INNER[:2])
    first = made_of()
    receive(project, INNER[2:])
    between = made_of()
    make_waiting_runs()

    assert (first, between, made_of()) == ((1, 1), (1, 2), (2, 2))
    assert Run.objects.get().status == "running"


def test_the_end_makes_the_run_of_all_that_came():
    project = make_project()

    for spans in (INNER[:2], INNER[2:], TOP):
        receive(project, spans)

    assert made_of() == (3, 3)
    assert Run.objects.get().status == "ok"


def test_a_span_that_comes_after_the_end_makes_the_run_anew():
    project = make_project()

    receive(project, [*INNER[1:], *TOP])
    receive(project, INNER[:1])

    assert made_of() == (2, 2)


def test_what_comes_while_a_run_cannot_be_made_is_tried_too(monkeypatch):
    project = make_project()
    receive(project, INNER, others_wait=lambda: True)
    with monkeypatch.context() as failing:
        failing.setattr(trace_runs, "assemble", lambda *anything, **more: 1 / 0)
        failing.setattr(
            trace_runs.logger, "exception", lambda *said, **more: receive(project, TOP, others_wait=lambda: True)
        )
        trace_runs.make_run(Trace.objects.get())
    between = Trace.objects.get()
    make_waiting_runs()

    assert (between.problem, between.batches_assembled) == ("ZeroDivisionError", 1)
    assert made_of() == (2, 2)
    assert Trace.objects.get().problem is None


def test_a_run_waits_for_a_disk_that_fails(monkeypatch):
    def is_full(*anything: object, **more: object) -> None:
        raise OSError("no space left")

    receive(make_project(), ORDER.spans, others_wait=lambda: True)
    with monkeypatch.context() as broken:
        broken.setattr(trace_runs, "assemble", is_full)
        make_waiting_runs()
        waiting = Trace.objects.get().problem, Run.objects.count()
    make_waiting_runs()

    assert waiting == (None, 0)
    assert Run.objects.count() == 1
