"""Traces of the OpenAI Agents SDK: from the exporter's objects to what their spans say."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.conventions.openai_agents import read
from sessions_app.core.errors import RecordError
from sessions_app.core.importers.openai_agents import matches, span_id_of, to_spans, trace_id_of
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    Reading,
    ResultPart,
    TextPart,
    ToolDefinition,
)
from sessions_app.core.spans.span import Span

TRACE_ID = "trace_" + "ab" * 16
TRACE = {
    "object": "trace",
    "id": TRACE_ID,
    "workflow_name": "Kettle support",
    "group_id": "sess-1",
    "metadata": {"user_id": "user-7", "turn": 2},
}


def make_span(data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "object": "trace.span",
        "id": "span_" + "1" * 24,
        "trace_id": TRACE_ID,
        "parent_id": None,
        "started_at": "2025-01-01T00:00:00.000001+00:00",
        "ended_at": "2025-01-01T01:00:00+01:00",
        "span_data": data,
        "error": None,
        **fields,
    }


def span_of(data: dict[str, Any], **fields: Any) -> Span:
    return to_spans({"data": [make_span(data, **fields)]})[0]


def reading_of(data: dict[str, Any], **fields: Any) -> Reading:
    reading = read(span_of(data, **fields))
    assert reading is not None
    return reading


# --- spans -------------------------------------------------------------------------------------


def test_trace_becomes_the_span_around_all_others() -> None:
    root, inside, deeper = to_spans(
        {
            "data": [
                TRACE,
                make_span({"type": "agent", "name": "A"}),
                make_span({"type": "function", "name": "f"}, id="span_2", parent_id="span_" + "1" * 24),
            ]
        }
    )

    assert (root.trace_id, root.parent_id, root.name) == ("ab" * 16, None, "Kettle support")
    assert inside.parent_id == root.span_id
    assert deeper.parent_id == inside.span_id
    assert {span.trace_id for span in (root, inside, deeper)} == {"ab" * 16}


def test_children_in_an_earlier_body_name_the_same_parent() -> None:
    child = to_spans({"data": [make_span({"type": "agent"}, id="span_b", parent_id="span_a")]})[0]
    parent = to_spans({"data": [make_span({"type": "agent"}, id="span_a")]})[0]
    other = to_spans({"data": [make_span({"type": "agent"}, id="span_c")]})[0]

    assert child.parent_id == parent.span_id
    assert child.parent_id != other.span_id


def test_span_ids_that_share_their_beginning_stay_apart() -> None:
    first, second = span_id_of("span_" + "0" * 23 + "1"), span_id_of("span_" + "0" * 23 + "2")

    assert first != second
    assert len(first) == len(second) == 16


def test_trace_id_of_another_form_is_its_hash() -> None:
    assert trace_id_of(TRACE_ID) == "ab" * 16
    assert trace_id_of("trace_mine") == trace_id_of("trace_mine")
    assert len(trace_id_of("trace_mine")) == 32
    assert trace_id_of("trace_mine") != trace_id_of("trace_yours")


def test_times_are_nanoseconds_and_keep_their_offset() -> None:
    span = span_of({"type": "agent"})

    assert span.start_ns == 1_735_689_600_000_001_000
    assert span.end_ns == 1_735_689_600_000_000_000


def test_span_that_has_not_ended_has_no_end() -> None:
    assert span_of({"type": "agent"}, ended_at=None).end_ns is None


@pytest.mark.parametrize(
    "value",
    [
        {"data": [TRACE, make_span({"type": "agent"})]},
        [TRACE, make_span({"type": "agent"})],
        [{"data": [TRACE]}, {"data": [make_span({"type": "agent"})]}],
    ],
    ids=["body", "list", "bodies"],
)
def test_every_form_of_the_export_gives_the_same_spans(value: Any) -> None:
    assert matches(value)
    assert to_spans(value) == to_spans({"data": [TRACE, make_span({"type": "agent"})]})


@pytest.mark.parametrize(
    "value",
    [
        {"data": []},
        {"data": [{"object": "list", "id": "x"}]},
        {"data": [{"object": "trace"}]},
        {"object": "chat.completion", "id": "x"},
        [{"kind": "request", "parts": []}],
        {"resourceSpans": []},
        [],
        None,
        "trace",
    ],
)
def test_other_documents_do_not_match(value: Any) -> None:
    assert not matches(value)


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({**TRACE, "id": None}, "data[1].id"),
        ({**TRACE, "id": 7}, "data[1].id"),
        ({**TRACE, "metadata": "x"}, "data[1].metadata"),
        (make_span({"type": "agent"}, trace_id=""), "data[1].trace_id"),
        (make_span({"type": "agent"}, parent_id=5), "data[1].parent_id"),
        (make_span({"type": "agent"}, started_at="yesterday"), "data[1].started_at"),
        (make_span({"type": "agent"}, ended_at=[]), "data[1].ended_at"),
        (make_span({}), "data[1].span_data.type"),
        (make_span({"type": "agent"}, span_data=[]), "data[1].span_data"),
        (make_span({"type": "agent"}, error="broken"), "data[1].error"),
        ({"object": "trace.event", "id": "x"}, "data[1].object"),
        (None, "data[1].object"),
    ],
)
def test_bad_object_is_refused_with_its_place(item: Any, field: str) -> None:
    with pytest.raises(RecordError) as refused:
        to_spans({"data": [TRACE, item]})

    assert refused.value.field == field


# --- readings ----------------------------------------------------------------------------------


def test_trace_says_session_and_user() -> None:
    span = to_spans([TRACE])[0]

    reading = read(span)

    assert reading is not None
    assert (reading.kind, reading.name) == ("chain", "Kettle support")
    assert (reading.session_id, reading.user_id, reading.tenant_id) == ("sess-1", "user-7", None)
    assert span.attributes.keys() - reading.used == {"openai_agents.metadata.turn"}


def test_agent_names_itself_and_its_tools() -> None:
    reading = reading_of(
        {"type": "agent", "name": "Support", "tools": ["f", 3], "handoffs": ["B"], "output_type": "str"}
    )

    assert (reading.kind, reading.agent_name, reading.tools) == ("agent", "Support", (ToolDefinition(name="f"),))
    assert "openai_agents.data.handoffs" not in reading.used


def test_generation_has_messages_answer_settings_and_usage() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    reading = reading_of(
        {
            "type": "generation",
            "input": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "[]"},
            ],
            "output": [{"role": "assistant", "content": "Hello", "tool_calls": None}],
            "model": "gpt-4o-mini",
            "model_config": {"temperature": 0.2, "top_p": None},
            "usage": {"input_tokens": 60, "output_tokens": 12, "input_tokens_details": {"cached_tokens": 50}},
        }
    )

    assert reading.messages == (
        ChatMessage(role="system", parts=(TextPart(text="Be kind."),)),
        ChatMessage(role="user", parts=(TextPart(text="Hi"),)),
        ChatMessage(role="assistant", parts=(CallPart(tool_name="f", call_id="c1", arguments='{"a": 1}'),)),
        ChatMessage(role="tool", parts=(ResultPart(call_id="c1", content="[]"),)),
    )
    assert reading.answer == ChatMessage(role="assistant", parts=(TextPart(text="Hello"),))
    assert (reading.model, reading.settings) == ("gpt-4o-mini", {"temperature": 0.2})
    assert (reading.input_tokens, reading.output_tokens) == (60, 12)


def test_streamed_generation_holds_the_whole_response_in_its_output() -> None:
    whole = {
        "id": "__fake_id__",
        "object": "response",
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One "}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        ],
    }

    reading = reading_of({"type": "generation", "output": [whole]})

    expected = (TextPart(text="One "), CallPart(tool_name="f", call_id="c1", arguments="{}"))
    assert reading.answer == ChatMessage(role="assistant", parts=expected)
    assert reading.response_id is None


def test_response_has_usage_and_no_content() -> None:
    reading = reading_of(
        {"type": "response", "response_id": "resp_1", "usage": {"input_tokens": 9, "output_tokens": 2}}
    )

    assert (reading.kind, reading.response_id) == ("model", "resp_1")
    assert (reading.messages, reading.answer, reading.model) == (None, None, None)
    assert (reading.input_tokens, reading.output_tokens) == (9, 2)


def test_function_is_a_tool_with_its_texts_as_they_came() -> None:
    reading = reading_of({"type": "function", "name": "f", "input": '{"a":  1.0}', "output": "{'a': None}"})

    assert (reading.kind, reading.tool_name) == ("tool", "f")
    assert (reading.arguments, reading.has_arguments) == ('{"a":  1.0}', True)
    assert (reading.result, reading.has_result) == ("{'a': None}", True)
    assert reading.error is None


def test_function_without_output_has_no_result() -> None:
    reading = reading_of({"type": "function", "name": "f", "input": None, "output": None})

    assert not reading.has_result
    assert not reading.has_arguments


def test_redacted_tool_error_is_an_error() -> None:
    error = {
        "message": "Error running tool (non-fatal)",
        "data": {"tool_name": "f", "error": "Tool execution failed. Error details are redacted."},
    }

    span = span_of({"type": "function", "name": "f", "output": "Please try again."}, error=error)
    reading = read(span)

    assert span.status == "error"
    assert reading is not None
    assert reading.error == ErrorInfo(
        type=None,
        message="Tool execution failed. Error details are redacted.",
        extra={"summary": "Error running tool (non-fatal)", "tool_name": "f"},
    )
    assert reading.result == "Please try again."


def test_error_without_a_cause_keeps_the_sentence() -> None:
    error = {"message": "Guardrail tripwire triggered", "data": {"guardrail": "cards"}}

    reading = reading_of({"type": "guardrail", "name": "cards", "triggered": True}, error=error)

    assert reading.error == ErrorInfo(type=None, message="Guardrail tripwire triggered", extra={"guardrail": "cards"})
    assert (reading.kind, reading.name, reading.output) == (
        "chain",
        "cards",
        "The guardrail tripped and ended the run.",
    )


def test_handoff_names_both_agents() -> None:
    reading = reading_of({"type": "handoff", "from_agent": "A", "to_agent": "B"})

    assert (reading.kind, reading.agent_name, reading.output) == ("handoff", "A", "B")


def test_usage_of_a_turn_is_not_counted_again() -> None:
    reading = reading_of({"type": "custom", "name": "turn", "data": {"usage": {"input_tokens": 60}}})

    assert (reading.kind, reading.name, reading.input_tokens) == ("chain", "turn", None)


def test_unknown_type_stays_as_it_came() -> None:
    span = span_of({"type": "speech", "input": "hello"})

    reading = read(span)

    assert reading is not None
    assert reading.kind is None
    assert "openai_agents.data.input" not in reading.used


def test_span_of_another_convention_is_not_read() -> None:
    assert read(Span(trace_id="1" * 32, span_id="1" * 16, attributes={"gen_ai.operation.name": "chat"})) is None


# --- hostile input -----------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TYPES = ["agent", "generation", "response", "function", "handoff", "guardrail", "custom", "mcp_tools", "new"]
FIELDS = ("name", "input", "output", "model", "model_config", "usage", "tools", "triggered", "to_agent")
DATA = st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional=dict.fromkeys(FIELDS, JSON_VALUES))


@given(JSON_VALUES, st.dictionaries(st.sampled_from(list(make_span({}))), JSON_VALUES))
def test_import_raises_nothing_but_record_errors(value: Any, fields: dict[str, Any]) -> None:
    for document in (value, [value], {"data": [value]}, {"data": value}, make_span({"type": "agent"}, **fields)):
        matches(document)
        with suppress(RecordError):
            assert to_spans(document) is not None


@given(DATA, JSON_VALUES, st.dictionaries(st.sampled_from(["message", "data"]), JSON_VALUES))
def test_reading_never_raises(data: dict[str, Any], group: Any, error: dict[str, Any]) -> None:
    reading = read(span_of(data, group_id=group, error=error))

    assert reading is not None
    assert reading.convention == "openai-agents"
