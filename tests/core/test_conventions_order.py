"""Conventions are asked only where a name shows that they may have something to say; none may be passed over."""

import pytest

from sessions_app.core.conventions import reading_order
from sessions_app.core.conventions.reading_order import READERS, read_span
from sessions_app.core.spans.span import Scope, Span, SpanEvent
from tests.traces.captures import captures


def make_span(names=(), scope="", events=()):
    said = tuple(SpanEvent(name=name, attributes={"content": "Hi"}) for name in events)
    return Span(
        trace_id="0" * 32,
        span_id="1" * 16,
        attributes=dict.fromkeys(names, "LLM"),
        scope=Scope(name=scope),
        events=said,
    )


def passed_over(span):
    """Conventions that say something of the span though nothing in its names shows it."""
    names = reading_order._names(span)
    silent = [read for read, signs in READERS if not any("\n" + sign in names for sign in signs)]
    return [read for read in silent if read(span) is not None]


@pytest.mark.parametrize("capture", captures()[::2], ids=str)
def test_no_convention_of_a_capture_is_passed_over(capture):
    assert [found for span in capture.spans for found in passed_over(span)] == []


@pytest.mark.parametrize(
    "span",
    [
        make_span(["ai.operationId"]),
        make_span(["openinference.span.kind"]),
        make_span(["llm.input_messages.0.message.role"]),
        make_span(["embedding.embeddings.0.embedding.text"]),
        make_span(["langfuse.trace.input"]),
        make_span(["langsmith.trace.name"]),
        make_span(["mlflow.spanInputs"]),
        make_span(scope="mlflow.openai"),
        make_span(["gen_ai.prompt.0.content"]),
        make_span(["llm.request.type"]),
        make_span(["gen_ai.system"]),
        make_span(["all_messages_events"]),
        make_span(["model_request_parameters"]),
        make_span(events=["gen_ai.user.message"]),
        make_span(events=["db.query.result"]),
    ],
    ids=str,
)
def test_one_name_is_enough_for_a_convention_to_be_asked(span):
    assert read_span(span).convention != "none"
    assert passed_over(span) == []


def test_a_span_without_such_a_name_is_of_no_convention():
    assert read_span(make_span(["http.route", "my.gen_ai.system"])).convention == "none"


def test_the_check_finds_a_convention_that_is_passed_over(monkeypatch):
    monkeypatch.setattr(reading_order, "_names", lambda span: "")

    assert passed_over(make_span(["gen_ai.system"])) != []
