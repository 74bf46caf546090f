"""The GenAI conventions: what a span is, whose it is, and what went wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.conventions.genai.span import read
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.reading import Reading
from sessions_app.core.spans.span import Attributes, Scope, Span, SpanEvent


def make_span(attributes: Attributes, **fields: object) -> Span:
    return Span(trace_id="1" * 32, span_id="2" * 16, attributes=attributes, **fields)  # type: ignore[arg-type]


def reading_of(attributes: Attributes, **fields: object) -> Reading:
    reading = read(make_span(attributes, **fields))
    assert reading is not None
    return reading


def raised(kind: str) -> SpanEvent:
    return SpanEvent(name="exception", attributes={"exception.type": kind, "exception.message": "words"})


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"http.request.method": "POST", "metadata": '{"user_id": "bo"}'},
        {"gen_ai.prompt.0.role": "user", "gen_ai.completion.0.content": "Hi"},
        {"events": '[{"event.name": "door.opened"}]'},
    ],
)
def test_span_of_another_convention_is_not_read(attributes):
    assert read(make_span(attributes)) is None


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("chat", "model"),
        ("generate_content", "model"),
        ("text_completion", "model"),
        ("execute_tool", "tool"),
        ("invoke_agent", "agent"),
        ("create_agent", "chain"),
        ("embeddings", "embedding"),
        ("vector_db_retrieve", "retrieval"),
        ("RETRIEVER", "retrieval"),
        ("handoff", "handoff"),
        ("agent_step", "chain"),
        ("no word of the specification", "chain"),
    ],
)
def test_kind_follows_the_operation(word, kind):
    assert reading_of({"gen_ai.operation.name": word}).kind == kind


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 3}, "model"),
        ({"gen_ai.request.model": "m"}, None),
        ({"gen_ai.tool.name": "search"}, "tool"),
        ({"gen_ai.request.model": "m", "final_result": "Done."}, "agent"),
        ({"gen_ai.retrieval.documents": "[]"}, "retrieval"),
        ({"gen_ai.agent.name": "front desk"}, None),
    ],
)
def test_kind_without_an_operation_follows_the_contents(attributes, kind):
    assert reading_of(attributes).kind == kind


def test_span_around_several_tools_is_no_tool():
    reading = reading_of({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"})

    assert (reading.kind, reading.tool_name) == ("chain", None)


def test_identity_is_read():
    reading = reading_of(
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": "c-1",
            "user.id": 42,
            "gen_ai.agent.name": "front desk",
            "gen_ai.agent.version": "3",
        }
    )

    assert (reading.session_id, reading.user_id) == ("c-1", "42")
    assert (reading.agent_name, reading.agent_version) == ("front desk", "3")


@pytest.mark.parametrize(
    "named", [{"session.id": "s-1"}, {"metadata": '{"session_id": "s-1"}'}, {"ai.settings.context.sessionId": "s-1"}]
)
def test_session_that_the_application_named_comes_before_the_frameworks_own(named):
    assert reading_of({"gen_ai.conversation.id": "made up", **named}).session_id == "s-1"


def test_session_that_was_written_over_is_none():
    reading = reading_of({"gen_ai.operation.name": "chat", "session_id": "[Scrubbed due to 'session']"})

    assert reading.session_id is None
    assert "session_id" not in reading.used


def test_metadata_that_say_more_are_read_and_kept():
    more = reading_of({"gen_ai.operation.name": "chat", "metadata": '{"user_id": "bo", "plan": "pro"}'})
    only = reading_of({"gen_ai.operation.name": "chat", "metadata": '{"user_id": "bo"}'})

    assert more.user_id == only.user_id == "bo"
    assert "metadata" not in more.used
    assert "metadata" in only.used


def test_framework_is_known_by_the_scope_that_it_makes_itself():
    own = reading_of({"gen_ai.operation.name": "chat"}, scope=Scope(name="pydantic-ai", version="2.68.0"))
    other = reading_of({"gen_ai.operation.name": "chat"}, scope=Scope(name="acme.instrumentation", version="1.0"))

    assert (own.framework, own.framework_version) == ("pydantic-ai", "2.68.0")
    assert (other.framework, other.framework_version) == (None, None)


@pytest.mark.parametrize(
    ("kind", "is_harmless"),
    [("langgraph.errors.ParentCommand", True), ("GraphInterrupt", True), ("shop.BillingUnavailable", False)],
)
def test_exceptions_that_only_steer_are_harmless(kind, is_harmless):
    span = {"gen_ai.operation.name": "invoke_agent"}

    reading = reading_of(span, status="error", events=(raised(kind),))

    assert reading.error == ErrorInfo(type=kind, message="words")
    assert reading.is_error_harmless is is_harmless


def test_exception_may_be_a_log_record_of_a_failed_span():
    span = {"gen_ai.operation.name": "chat", "error.type": "X"}

    failed = reading_of(span, status="error", logs=(raised("ValueError"),))
    fine = reading_of({"gen_ai.operation.name": "chat"}, logs=(raised("ValueError"),))

    assert failed.error == ErrorInfo(type="ValueError", message="words")
    assert "error.type" in failed.used
    assert fine.error is None


def test_status_of_a_tool_is_an_error_where_the_span_has_none():
    span = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": '[{"text": "No such order."}]'}

    failed = reading_of({**span, "gen_ai.tool.status": "error"})
    fine = reading_of({**span, "gen_ai.tool.status": "success"})

    assert failed.error == ErrorInfo(type=None, message="No such order.")
    assert fine.error is None


def test_attributes_that_cannot_be_understood_stay_unknown():
    reading = reading_of(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "te',
            "gen_ai.output.messages": 5,
            "gen_ai.usage.input_tokens": "many",
            "gen_ai.request.model": ["m"],
            "gen_ai.system_instructions": '[{"type": "text", "content": "You a',
            "acme.own": "kept",
        }
    )

    assert reading.used == {"gen_ai.operation.name"}
    assert (reading.messages, reading.answer, reading.input_tokens, reading.model) == (None, None, None, None)
    assert reading.instructions is None


def test_attributes_that_were_understood_are_named():
    reading = reading_of(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.system": "openai",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": 1,
            "logfire.msg": "chat m",
            "operation.cost": 0.1,
        }
    )

    assert reading.used == {
        "gen_ai.operation.name",
        "gen_ai.system",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
        "logfire.msg",
    }


# --- anything may stand anywhere ------------------------------------------------------------------

_WORDS = (
    *("role", "parts", "type", "text", "content", "tool_call", "tool_call_response", "id", "name", "arguments"),
    *(
        "response",
        "result",
        "user",
        "assistant",
        "tool",
        "system",
        "finish_reason",
        "function",
        "tool_calls",
        "message",
    ),
    *("toolUse", "toolResult", "event.name", "gen_ai.choice", "gen_ai.tool.message", "inputs", "input_str", "output"),
    *("messages", "documents", "query", "lc", "kwargs", "function_tools", "output_object", "user_id", "outputs", ""),
)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.sampled_from(_WORDS)
    | st.sampled_from(("9" * 400, "1e999", "NaN", "[" * 500, '{"a": ', '"\\ud800"', '[{"text": 1}]')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=4),
    max_leaves=12,
)
_NAMES = (
    *("gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"),
    *("gen_ai.tool.definitions", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments"),
    *("gen_ai.tool.call.result", "tool_arguments", "tool_response", "gen_ai.tool.json_schema", "gen_ai.agent.tools"),
    *("model_request_parameters", "pydantic_ai.all_messages", "pydantic_ai.new_message_index", "final_result"),
    *("events", "all_messages_events", "metadata", "gen_ai.task.input", "gen_ai.task.output", "gen_ai.prompt"),
    *("gen_ai.usage.input_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.response.finish_reasons"),
    *("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token", "gen_ai.request.choice.count"),
    *("gen_ai.retrieval.documents", "gen_ai.request.seed", "db.query.result.score", "user.id", "content", "message"),
)
_TEXTS = _VALUES.map(lambda value: json.dumps(value, skipkeys=True))
_ATTRIBUTES = st.dictionaries(st.sampled_from(_NAMES), _VALUES | _TEXTS, max_size=8)
_OPERATIONS = st.sampled_from(("chat", "execute_tool", "invoke_agent", "retrieval", "embeddings", "handoff", "chain"))
_EVENT_NAMES = (
    *("gen_ai.client.inference.operation.details", "gen_ai.user.message", "gen_ai.tool.message", "gen_ai.choice"),
    *("gen_ai.content.prompt", "gen_ai.content.completion", "gen_ai.content.completion.chunk", "db.query.result"),
    "exception",
)
_EVENTS = st.lists(
    st.builds(SpanEvent, name=st.sampled_from(_EVENT_NAMES), attributes=_ATTRIBUTES, body=_VALUES), max_size=3
)


@given(attributes=_ATTRIBUTES, operation=_OPERATIONS, events=_EVENTS, logs=_EVENTS)
def test_read_never_raises(attributes, operation, events, logs):
    span = make_span(
        {**attributes, "gen_ai.operation.name": operation}, events=tuple(events), logs=tuple(logs), start_ns=1, end_ns=9
    )

    reading = read(span)

    assert reading is not None
    assert reading.messages != ()
    assert "gen_ai.operation.name" in reading.used


@given(attributes=_ATTRIBUTES, events=_EVENTS)
def test_read_without_an_operation_never_raises(attributes, events):
    reading = read(make_span(attributes, events=tuple(events)))

    assert reading is None or reading.convention == "otel-genai"


@pytest.mark.parametrize("operation", ["chat", "execute_tool", "invoke_agent", "retrieval", "embeddings"])
@pytest.mark.parametrize("number", [10**400, "9" * 400, -1, True])
def test_numbers_that_count_nothing_stay_unknown(operation, number):
    names = {name for name in _NAMES if "usage" in name or "time_to" in name or "index" in name or "count" in name}

    reading = reading_of({"gen_ai.operation.name": operation, **dict.fromkeys(names, number)}, start_ns=1, end_ns=9)

    assert (reading.input_tokens, reading.first_token_ns) == (None, None)
    assert not reading.used & (names - {"gen_ai.request.choice.count"})
