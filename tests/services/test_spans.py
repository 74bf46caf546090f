"""Spans on their way to a run, with the real database."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.core.formats.native import encode_native
from sessions_app.core.history import messages
from sessions_app.core.spans.span import LogRecord, Span, SpanEvent
from sessions_app.mapping.load import load_run
from sessions_app.models import ColdCase, ContentBlock, Project, Run, Session, SpanBatch, StoredPayload, Trace
from sessions_app.services import spans as service
from sessions_app.services import trace_runs
from sessions_app.services.ingest import ingest_document
from sessions_app.services.spans import receive
from sessions_app.services.trace_runs import make_waiting_runs, spans_of
from sessions_app.services.verification import problems
from tests.builders import make_project, make_record
from tests.traces.captures import CHOICE, Capture, decoded

EXAMPLES = 500 if os.environ.get("TRIAL_SIZE") == "full" else 100
ORDER = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup")
LATE_LOGS = Capture(CHOICE / "openai-sdk-otel-contrib" / "order_lookup")


def stored(project: Project) -> bytes:
    return encode_native(load_run(Run.objects.get(project=project)))


def wait(trace: Trace, seconds: float) -> None:
    """As if so much time had passed."""
    Trace.objects.filter(pk=trace.pk).update(changed_at=timezone.now() - timedelta(seconds=seconds))


@pytest.mark.django_db
def test_spans_of_one_trace_become_a_run():
    project = make_project()

    receive(project, ORDER.spans)

    run = Run.objects.get(project=project)
    trace = Trace.objects.get()
    assert (run.run_id, run.status, run.verdict) == (ORDER.spans[0].trace_id, "ok", "replayable")
    assert (run.model_call_count, run.tool_call_count, run.agent_name) == (3, 2, "support_agent")
    assert (trace.run, trace.is_closed, trace.batches_assembled) == (run, True, 1)
    assert list(problems()) == []


@pytest.mark.django_db
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_order_batches_and_repetition_make_no_difference(data):
    capture = data.draw(st.sampled_from([ORDER, LATE_LOGS]))
    logs = [log for request in capture.requests for log in decoded(request)[1]]
    alone = [replace(span, logs=()) for span in capture.spans]
    everything: list[Span | LogRecord] = [*alone, *logs]
    twice = data.draw(st.permutations(everything + everything))
    cuts = data.draw(st.sets(st.integers(1, len(twice) - 1), max_size=data.draw(st.sampled_from([1, 2, 4, 30]))))
    with transaction.atomic():
        whole, pieces = make_project("whole"), make_project("pieces")
        receive(whole, alone, logs)

        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(twice)], strict=True):
            some = twice[start:end]
            receive(
                pieces,
                [each for each in some if isinstance(each, Span)],
                [each for each in some if isinstance(each, LogRecord)],
            )

        for left, right in zip(whole.runs.order_by("run_id"), pieces.runs.order_by("run_id"), strict=True):
            assert encode_native(load_run(left)) == encode_native(load_run(right))
            assert (left.verdict, left.kit, left.story) == (right.verdict, right.kit, right.story)
        transaction.set_rollback(True)


@pytest.mark.django_db
def test_a_missing_span_does_make_a_difference():
    """The control of the test above."""
    whole, less = make_project("whole"), make_project("less")
    receive(whole, ORDER.spans)
    receive(less, [span for span in ORDER.spans if not span.name.startswith("chat")])

    assert stored(whole) != stored(less)


@pytest.mark.django_db
def test_a_run_without_its_topmost_span_is_running_then_cut_off_and_a_late_one_ends_it():
    project = make_project()
    inner = [span for span in ORDER.spans if span.parent_id is not None]
    receive(project, inner)
    arriving = Run.objects.get(project=project)
    trace = Trace.objects.get()

    wait(trace, 61)
    made = make_waiting_runs()
    given_up = Run.objects.get(project=project)
    receive(project, [span for span in ORDER.spans if span.parent_id is None])
    whole = Run.objects.get(project=project)

    assert (arriving.status, made, given_up.status, whole.status) == ("running", 1, "cut_off", "ok")
    assert (arriving.verdict, whole.verdict) == ("cold", "replayable")
    assert make_waiting_runs() == 0
    assert arriving.pk == whole.pk


def started(run: Run, span: Span) -> datetime | None:
    """When the step began of which the span tells."""
    return next(step.started_at for step in run.steps if step.name == span.attributes["gen_ai.tool.name"])


@pytest.mark.django_db
def test_a_late_span_keeps_what_people_said_of_the_run():
    project = make_project()
    late = next(span for span in ORDER.spans if span.name.startswith("execute_tool"))
    receive(project, [span for span in ORDER.spans if span is not late])
    run = Run.objects.get(project=project)
    ColdCase.objects.create(run=run, reason="nobody knows")
    before = started(run, late)

    receive(project, [late])

    again = Run.objects.get(project=project)
    assert (again.pk, again.cold_case.reason) == (run.pk, "nobody knows")
    assert (before, started(again, late)) == (None, late.started_at)


@pytest.mark.django_db
def test_the_session_follows_a_span_that_names_it_late():
    project = make_project()
    named = replace(ORDER.spans[0], attributes={**ORDER.spans[0].attributes, "session.id": "s_7"})
    receive(project, [drop_session(span) for span in ORDER.spans[1:]])
    first = Run.objects.get(project=project).session.session_id

    receive(project, [named])

    assert first == ORDER.spans[0].trace_id
    assert list(Session.objects.filter(project=project).values_list("session_id", flat=True)) == ["s_7"]


def drop_session(span: Span) -> Span:
    return replace(span, attributes={k: v for k, v in span.attributes.items() if k != "gen_ai.conversation.id"})


@pytest.mark.django_db
def test_spans_come_back_to_the_letter():
    project = make_project()
    receive(project, ORDER.spans)

    assert spans_of(Trace.objects.get()) == sorted(ORDER.spans, key=lambda span: span.span_id)


@pytest.mark.django_db
def test_the_same_spans_again_store_nothing():
    project = make_project()
    receive(project, ORDER.spans)
    before = [model.objects.count() for model in (SpanBatch, ContentBlock, StoredPayload)]

    receive(project, list(reversed(ORDER.spans)))

    assert [model.objects.count() for model in (SpanBatch, ContentBlock, StoredPayload)] == before


@pytest.mark.django_db
def test_secrets_are_gone_before_anything_is_stored():
    project = make_project()
    key = "sk-proj-" + "A1b2C3d4" * 5
    root = ORDER.spans[0]
    long_text = f"The key is {key} and " + "more words " * 60
    attributes = {"api_key": "plain words", "note": key, "long": long_text, "json": f'{{"password": "x7{"y" * 400}"}}'}
    events = (SpanEvent(name="log", attributes={"line": key}),)

    receive(project, [replace(root, attributes={**root.attributes, **attributes}, events=events)])

    texts = [str(span.attributes) + str(span.events) for span in spans_of(Trace.objects.get())]
    assert key not in "".join(texts)
    assert "plain words" not in "".join(texts)
    assert "x7yyy" not in "".join(texts)
    assert "more words" in "".join(texts)


@pytest.mark.django_db
def test_what_cannot_be_made_into_a_run_keeps_its_spans(monkeypatch):
    project = make_project()
    monkeypatch.setattr(trace_runs, "assemble", lambda spans, is_closed: 1 / 0)
    receive(project, ORDER.spans)
    failed = Trace.objects.get()
    monkeypatch.undo()

    receive(project, [replace(ORDER.spans[0], name="one more version")])

    assert (failed.problem, failed.run) == ("ZeroDivisionError", None)
    assert Trace.objects.get().problem is None
    assert Run.objects.get(project=project).status == "ok"


@pytest.mark.django_db
def test_a_recording_that_somebody_sent_is_not_written_over():
    project = make_project()
    trace_id = ORDER.spans[0].trace_id
    ingest_document(project, __import__("json").dumps(make_record(trace_id, input="mine")).encode())

    receive(project, ORDER.spans)

    assert Run.objects.get(project=project).input_preview == "mine"
    assert Trace.objects.get().problem == "another recording has this id"


@pytest.mark.django_db
def test_a_late_span_does_not_empty_a_run_that_came_as_a_record():
    origin, project = make_project("origin"), make_project()
    receive(origin, ORDER.spans)
    ingest_document(project, stored(origin))

    receive(project, [span for span in ORDER.spans if span.name.startswith("execute_tool")][:1])

    assert Run.objects.get(project=project).model_call_count == 3
    assert Trace.objects.get(project=project).problem == "another recording has this id"


@pytest.mark.django_db
@pytest.mark.parametrize(("growth", "made"), [(1, 1), (100, 2)])
def test_a_long_trace_that_ended_is_made_again_only_when_it_grew_enough(monkeypatch, growth, made):
    project = make_project()
    monkeypatch.setattr(service, "_SMALL", 3)
    monkeypatch.setattr(service, "_GROWTH", growth)
    late, *rest = sorted(ORDER.spans, key=lambda span: span.parent_id is None)
    receive(project, rest)
    make_waiting_runs()

    receive(project, [late])
    waiting = Trace.objects.get()
    make_waiting_runs()

    assert (waiting.batches_received, waiting.batches_assembled) == (2, made)
    assert Trace.objects.get().batches_assembled == 2


@pytest.mark.django_db
def test_log_records_without_spans_make_no_run():
    project = make_project()
    event = SpanEvent(name="gen_ai.user.message", time_ns=1, body={"content": "Hi"})

    receive(project, [], [LogRecord(trace_id="ab" * 16, span_id="cd" * 8, event=event)])
    wait(Trace.objects.get(), 61)
    make_waiting_runs()

    assert Run.objects.count() == 0
    assert make_waiting_runs() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("first", [0, 1])
def test_log_records_of_one_moment_stay_in_the_order_of_their_request(first):
    """Clocks that tell milliseconds stamp all messages of a call alike."""
    project = make_project()
    said = [("system", "Be kind"), ("user", "what is 2"), ("assistant", "a number"), ("user", "and 3")]
    events = [SpanEvent(name=f"gen_ai.{role}.message", time_ns=7, body={"content": words}) for role, words in said]
    events.append(SpanEvent(name="gen_ai.choice", time_ns=7, body={"message": {"content": "another"}}))
    trace, number = "ab" * 16, "cd" * 8
    logs = [LogRecord(trace_id=trace, span_id=number, event=event) for event in events]
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    span = Span(trace_id=trace, span_id=number, name="chat", start_ns=1, end_ns=9, attributes=call)

    receive(project, [span][first:], logs)
    receive(project, [span], logs)

    ((_, asked),) = load_run(Run.objects.get()).model_calls
    assert asked.history is not None
    told = [part["content"] for message in messages(asked.history) for part in message.value["parts"]]
    assert told == ["what is 2", "a number", "and 3"]
    assert asked.response is not None
    assert asked.response.value["parts"][0]["content"] == "another"


@pytest.mark.django_db
def test_many_traces_at_once_are_left_to_a_worker_which_is_told(monkeypatch):
    project, told = make_project(), []
    monkeypatch.setattr(service, "_AT_ONCE", 1)
    monkeypatch.setattr(service, "wake_for_spans", lambda: told.append("now"))
    other = [replace(span, trace_id="ef" * 16) for span in ORDER.spans]

    receive(project, [*ORDER.spans, *other])
    made_at_once = Run.objects.count()
    make_waiting_runs()

    assert (made_at_once, told, Run.objects.count()) == (1, ["now"], 2)
