"""Logged invocations of model providers: from requests and responses to the calls of one run."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.conventions.provider_payload import read
from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.importers import provider_payload
from sessions_app.core.importers.provider_payload import matches, to_spans
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    Part,
    Reading,
    ResultPart,
    TextPart,
    ToolDefinition,
)
from sessions_app.core.spans.span import Span

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
QUESTION = {"role": "user", "content": "Hi"}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "[]"}
ANSWER = {"role": "assistant", "content": "Done"}
CHAT_REQUEST = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "system", "content": "Be kind."}, QUESTION, ASKS, RESULT],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "temperature": 0.2,
}
CHAT_RESPONSE = {
    "id": "chatcmpl-1",
    "model": "gpt-4o-mini-2024-07-18",
    "choices": [{"message": ANSWER, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 30, "completion_tokens": 4},
}
CHAT_TOOLS = (ToolDefinition(name="f", parameters={"type": "object"}),)


def said(role: Any, *parts: Part) -> ChatMessage:
    return ChatMessage(role=role, parts=parts)


SYSTEM = said("system", TextPart(text="Be kind."))
USER = said("user", TextPart(text="Hi"))
CALLS = said("assistant", CallPart(tool_name="f", call_id="c1", arguments='{"a": 1}'))
GIVEN = said("tool", ResultPart(call_id="c1", content="[]"))
DONE = said("assistant", TextPart(text="Done"))


def calls_of(value: Any) -> list[Reading]:
    """The readings of the model spans, in the order of their ids; the first span is the run."""
    root, *spans = to_spans(value)
    assert spans == sorted(spans, key=lambda span: span.span_id)
    assert {span.parent_id for span in spans} == {root.span_id}
    return [reading for span in spans if (reading := read(span))]


def root_of(value: Any) -> tuple[Span, Reading]:
    root = to_spans(value)[0]
    reading = read(root)
    assert reading is not None
    return root, reading


# --- conversations -----------------------------------------------------------------------------


def test_request_and_response_become_every_call_of_the_conversation() -> None:
    first, last = calls_of({"request": CHAT_REQUEST, "response": CHAT_RESPONSE})

    assert (first.messages, first.answer) == ((SYSTEM, USER), CALLS)
    assert (last.messages, last.answer) == ((SYSTEM, USER, CALLS, GIVEN), DONE)
    assert [first.tools, last.tools] == [CHAT_TOOLS, CHAT_TOOLS]
    assert [first.input_tokens, last.input_tokens, last.output_tokens] == [None, 30, 4]
    assert (last.model, last.answered_model, last.response_id) == (
        "gpt-4o-mini",
        "gpt-4o-mini-2024-07-18",
        "chatcmpl-1",
    )
    assert (last.settings, last.finish_reason) == ({"temperature": 0.2}, "stop")


@pytest.mark.parametrize(
    "value",
    [
        {"request": CHAT_REQUEST, "response": CHAT_RESPONSE},
        {"request": json.dumps(CHAT_REQUEST), "response": json.dumps(CHAT_RESPONSE)},
        {"request": {"method": "POST", "body": CHAT_REQUEST}, "response": {"status_code": 200, "body": CHAT_RESPONSE}},
        {"body": CHAT_REQUEST, "output": CHAT_RESPONSE},
        {"request_body": CHAT_REQUEST, "response_body": CHAT_RESPONSE},
        {"full_request": CHAT_REQUEST, "full_response": CHAT_RESPONSE, "model_version": "1"},
        {"properties": {"requestBody": json.dumps(CHAT_REQUEST), "responseBody": json.dumps(CHAT_RESPONSE)}},
        {"properties": json.dumps({"requestBody": CHAT_REQUEST, "responseBody": CHAT_RESPONSE})},
        {**CHAT_REQUEST, "response": CHAT_RESPONSE},
    ],
)
def test_every_log_gives_the_same_calls(value: Any) -> None:
    assert matches(value)
    expected = calls_of({"request": CHAT_REQUEST, "response": CHAT_RESPONSE})
    assert [(call.messages, call.answer, call.tools, call.input_tokens) for call in calls_of(value)] == [
        (call.messages, call.answer, call.tools, call.input_tokens) for call in expected
    ]


def test_conversation_that_ends_with_an_answer_has_no_call_beyond_it() -> None:
    first, last = calls_of([QUESTION, ASKS, RESULT, ANSWER])

    assert (first.messages, first.answer) == ((USER,), CALLS)
    assert (last.messages, last.answer) == ((USER, CALLS, GIVEN), DONE)


def test_conversation_that_ends_with_a_result_keeps_it_in_a_call_without_answer() -> None:
    first, last = calls_of([QUESTION, ASKS, RESULT])

    assert first.answer == CALLS
    assert (last.messages, last.answer) == ((USER, CALLS, GIVEN), None)


def test_greeting_before_the_first_question_is_no_call() -> None:
    only = calls_of([{"role": "system", "content": "Be kind."}, {"role": "assistant", "content": "Hello!"}, QUESTION])

    assert [call.messages for call in only] == [(SYSTEM, said("assistant", TextPart(text="Hello!")), USER)]


def test_responses_items_of_one_turn_are_one_answer() -> None:
    items = [
        {"role": "user", "content": "Hi"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": "2"},
    ]
    response = {
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]}]
    }

    first, last = calls_of(
        {"request": {"model": "gpt-5", "input": items, "instructions": "Be kind."}, "response": response}
    )

    assert first.messages == (USER,)
    assert first.answer is not None
    assert [part.call_id for part in first.answer.parts if isinstance(part, CallPart)] == ["c1", "c2"]
    assert (last.answer, last.instructions) == (DONE, "Be kind.")


def test_anthropic_messages_hold_results_of_tools_in_the_users_turn() -> None:
    request = {
        "model": "claude-3",
        "system": "Be kind.",
        "max_tokens": 100,
        "metadata": {"user_id": "user-7"},
        "messages": [
            QUESTION,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "[]"}]},
        ],
    }
    response = {"role": "assistant", "content": [{"type": "text", "text": "Done"}], "stop_reason": "end_turn"}

    first, last = calls_of({"request": request, "response": response})

    assert first.answer == said("assistant", CallPart(tool_name="f", call_id="c1", arguments={"a": 1}))
    assert last.messages == (USER, first.answer, GIVEN)
    assert (last.answer, last.finish_reason, last.instructions, last.user_id) == (
        DONE,
        "end_turn",
        "Be kind.",
        "user-7",
    )


def test_google_contents_are_read_from_a_vertex_log() -> None:
    log = {
        "logging_time": "2025-01-01T00:00:00Z",
        "model": "publishers/google/models/gemini-2.0-flash",
        "model_version": "001",
        "request_id": 12345,
        "full_request": {
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"x": 1}}}]},
            ]
        },
        "full_response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Done"}]}}]},
    }

    first, last = calls_of(log)

    assert first.answer == said("assistant", CallPart(tool_name="f", arguments={"a": 1}))
    assert (last.answer, last.model, last.answered_model) == (DONE, log["model"], "001")


# --- logs --------------------------------------------------------------------------------------

BEDROCK = {
    "schemaType": "ModelInvocationLog",
    "timestamp": "2025-01-01T00:00:00Z",
    "region": "us-east-1",
    "requestId": "915a6a04",
    "operation": "Converse",
    "modelId": "anthropic.claude-3",
    "input": {
        "inputContentType": "application/json",
        "inputBodyJson": {
            "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
            "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]},
        },
        "inputTokenCount": 35,
    },
    "output": {
        "outputBodyJson": {"output": {"message": {"role": "assistant", "content": [{"text": "Done"}]}}},
        "outputTokenCount": 4,
    },
}


def test_bedrock_log_says_model_provider_region_and_time() -> None:
    root, call = to_spans(BEDROCK)
    reading = read(call)

    assert reading is not None
    assert (reading.messages, reading.answer, reading.tools) == ((USER,), DONE, CHAT_TOOLS)
    assert (reading.model, reading.provider) == ("anthropic.claude-3", "aws.bedrock")
    assert (reading.input_tokens, reading.output_tokens) == (35, 4)
    assert root.resource == {"cloud.region": "us-east-1"}
    assert root.start_ns == call.start_ns == 1_735_689_600_000_000_000
    assert root.attributes["provider.log.operation"] == "Converse"
    assert root.attributes["provider.log.input"] == {"inputContentType": "application/json", "inputTokenCount": 35}


def test_bedrock_stream_is_put_together() -> None:
    events = [
        {"type": "message_start", "message": {"role": "assistant", "model": "claude-3", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Do"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ne"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    ]

    (only,) = calls_of({**BEDROCK, "output": {"outputBodyJson": events}})

    assert (only.answer, only.finish_reason) == (DONE, "end_turn")


def test_api_management_log_holds_messages_as_text() -> None:
    log = {
        "category": "GatewayLlmLogs",
        "properties": {
            "correlationId": "corr-1",
            "modelName": "gpt-4o-mini",
            "promptTokens": 30,
            "completionTokens": 4,
            "requestMessages": json.dumps([QUESTION]),
            "responseMessages": json.dumps([ANSWER]),
        },
    }

    (only,) = calls_of(log)

    assert (only.messages, only.answer, only.model) == ((USER,), DONE, "gpt-4o-mini")
    assert (only.input_tokens, only.output_tokens) == (30, 4)


def test_time_is_the_runs_alone_when_there_are_earlier_calls() -> None:
    root, first, last = to_spans(
        {"request": CHAT_REQUEST, "response": CHAT_RESPONSE, "timestamp": "2025-01-01T00:00:00Z"}
    )

    assert (root.start_ns, first.start_ns, last.start_ns) == (1_735_689_600_000_000_000, None, None)


def test_unreadable_time_is_left_alone() -> None:
    root, _ = root_of({"request": {"messages": [QUESTION]}, "timestamp": "yesterday"})

    assert root.start_ns is None
    assert root.attributes["provider.log.timestamp"] == "yesterday"


def test_log_names_session_and_user() -> None:
    _, reading = root_of({"request": CHAT_REQUEST, "session_id": "s-1", "userId": "u-1", "tenant_id": "t-1"})

    assert (reading.session_id, reading.user_id, reading.tenant_id) == ("s-1", "u-1", "t-1")


def test_list_of_invocations_gives_a_run_for_each() -> None:
    spans = to_spans([BEDROCK, {**BEDROCK, "requestId": "other"}])

    assert len({span.trace_id for span in spans}) == 2
    assert len(spans) == 4


# --- ids ---------------------------------------------------------------------------------------


def test_request_id_gives_the_trace_id() -> None:
    again = {**BEDROCK, "accountId": "added later"}

    assert to_spans(BEDROCK)[0].trace_id == to_spans(again)[0].trace_id
    assert to_spans(BEDROCK)[0].trace_id != to_spans({**BEDROCK, "requestId": "other"})[0].trace_id


def test_content_gives_the_trace_id_where_there_is_no_request_id() -> None:
    first, same, other = (to_spans([QUESTION, answer])[0].trace_id for answer in (ANSWER, dict(ANSWER), ASKS))

    assert first == same
    assert first != other


# --- how it ended ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "status"),
    [
        (CHAT_RESPONSE, "ok"),
        ({**CHAT_RESPONSE, "choices": [{"message": ASKS}]}, "unset"),
        (None, "unset"),
        ({"error": {"message": "too long", "type": "invalid_request_error"}}, "error"),
        ({"status_code": 500, "body": "oops"}, "error"),
    ],
)
def test_run_has_ended_when_the_last_answer_asks_for_nothing(response: Any, status: str) -> None:
    assert root_of({"request": CHAT_REQUEST, "response": response})[0].status == status


def test_error_of_the_response_is_that_of_the_last_call_and_the_run() -> None:
    error = {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}
    value = {"request": CHAT_REQUEST, "response": {"error": error}}

    first, last = calls_of(value)

    expected = ErrorInfo(type="invalid_request_error", message="too long", extra={"code": "context_length_exceeded"})
    assert (first.error, last.error, root_of(value)[1].error) == (None, expected, expected)
    assert last.answer is None


def test_error_code_of_a_log_is_an_error() -> None:
    (only,) = calls_of({**BEDROCK, "output": None, "errorCode": "ThrottlingException"})

    assert only.error == ErrorInfo(type="ThrottlingException", message=None)


def test_http_status_alone_tells_of_an_error() -> None:
    (failed,) = calls_of({"request": {"messages": [QUESTION]}, "response": {"status_code": 429, "body": "slow down"}})
    (fine,) = calls_of({"request": {"messages": [QUESTION]}, "response": {"status_code": 200, "body": ANSWER}})

    assert failed.error == ErrorInfo(type=None, message="HTTP 429")
    assert fine.error is None


# --- what is not ours --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}],
        {"messages": [{"kind": "request", "parts": []}], "run_id": "r"},
        {"session_id": "s", "messages": [{"type": "ModelRequest", "parts": []}]},
        {"format": "agent-replay.run", "version": 1, "run_id": "r", "model": "m", "input": "Hi"},
        {"input": "Hi", "final_output": "x", "items": [], "model": "m"},
        {"request": {"method": "GET", "uri": "https://example.com"}, "response": {"status": {"code": 200}}},
        {"data": [{"object": "trace", "id": "trace_1"}]},
        {"messages": []},
        {"messages": [QUESTION, "text"]},
        {"input": "Hi"},
        {"properties": {"requestBody": '{"messages": [{"role": "us'}},
        [],
        [1],
        None,
    ],
)
def test_other_documents_do_not_match(value: Any) -> None:
    assert not matches(value)


def test_document_without_a_request_is_refused_with_its_field() -> None:
    with pytest.raises(RecordError) as refused:
        to_spans([BEDROCK, {"response": CHAT_RESPONSE}])

    assert refused.value.field == "[1].request"


def test_payload_that_is_too_deep_is_refused() -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]

    with pytest.raises(RecordTooLarge):
        to_spans({"request": {"messages": [{"role": "user", "content": deep}]}})


@pytest.mark.parametrize(("limit", "value"), [("_MAX_ITEMS", 29), ("_MAX_CHARACTERS", 500)])
def test_long_conversation_is_kept_as_one_call(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    turns = [QUESTION, ANSWER] * 5
    assert len(calls_of([*turns, QUESTION])) == 6
    monkeypatch.setattr(provider_payload, limit, value)

    (only,) = calls_of([*turns, QUESTION])

    assert only.messages is not None
    assert len(only.messages) == 11


def test_span_of_another_convention_is_not_read() -> None:
    assert read(Span(trace_id="1" * 32, span_id="1" * 16, attributes={"provider.kind": "cloud"})) is None


# --- hostile input -----------------------------------------------------------------------------

WORDS = ["request", "response", "input", "output", "body", "messages", "contents", "model", "role", "content", "user"]
WORDS += ["tool_calls", "parts", "properties", "timestamp", "requestId", "error", "status", "type", "function_call"]
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=4)
    | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES, st.lists(st.dictionaries(st.sampled_from(WORDS), JSON_VALUES), max_size=3))
def test_import_raises_nothing_but_record_errors(value: Any, messages: list[dict[str, Any]]) -> None:
    request = {"model": "m", "messages": [{"role": "user", **message} for message in messages]}
    for document in (value, [value], {"request": value}, {"request": request, "response": value, "timestamp": value}):
        matches(document)
        with suppress(RecordError):
            assert all(read(span) for span in to_spans(document))


@given(st.dictionaries(st.sampled_from(["request", "response", "answer", "error", "status", "model"]), JSON_VALUES))
def test_reading_never_raises(attributes: dict[str, Any]) -> None:
    named = {f"provider.{name}": value for name, value in attributes.items()}
    span = Span(trace_id="1" * 32, span_id="1" * 16, attributes={"provider.kind": "invocation", **named})

    reading = read(span)

    assert reading is not None
    assert reading.kind == "model"
