"""MLflow's attributes as readings."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.conventions.mlflow.span import read
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    Reading,
    RetrievedChunk,
    TextPart,
    ToolDefinition,
)
from sessions_app.core.spans.span import Scope, Span, SpanEvent


def make_span(attributes: dict[str, Any], **fields: Any) -> Span:
    """Attributes as MLflow writes them: JSON inside text."""
    written = {name: json.dumps(value) for name, value in attributes.items()}
    return Span(trace_id="1" * 32, span_id="2" * 16, attributes=written, **fields)


def reading(attributes: dict[str, Any], **fields: Any) -> Reading:
    found = read(make_span(attributes, **fields))
    assert found is not None
    return found


def said(words: str) -> tuple[TextPart]:
    return (TextPart(text=words),)


TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
MODEL = {
    "mlflow.spanType": "CHAT_MODEL",
    "mlflow.spanInputs": {
        "model": "gpt-4o-mini",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where?"}],
        "temperature": 0.2,
        "tools": [TOOL],
    },
    "model": "gpt-4o-mini",
    "temperature": 0.2,
    "tools": [TOOL],
    "mlflow.chat.tools": [TOOL],
    "mlflow.llm.model": "gpt-4o-mini-2024",
    "mlflow.chat.tokenUsage": {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 4},
    "mlflow.spanOutputs": {
        "id": "r",
        "model": "gpt-4o-mini-2024",
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Gone."}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    },
}


def test_model_call_is_read():
    found = reading(MODEL)

    assert (found.kind, found.convention) == ("model", "mlflow")
    assert found.messages == (
        ChatMessage(role="system", parts=said("Be kind.")),
        ChatMessage(role="user", parts=said("Where?")),
    )
    assert found.answer == ChatMessage(role="assistant", parts=said("Gone."))
    assert found.tools == (ToolDefinition(name="find", parameters={"type": "object"}),)
    assert (found.model, found.answered_model, found.response_id) == ("gpt-4o-mini", "gpt-4o-mini-2024", "r")
    assert (found.settings, found.finish_reason) == ({"temperature": 0.2}, "stop")
    assert (found.input_tokens, found.output_tokens) == (9, 2)
    assert found.used == MODEL.keys()


def test_model_call_of_langchain_has_its_settings_in_one_place():
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "find"}}]}
    attributes = {
        "mlflow.spanType": "CHAT_MODEL",
        "mlflow.spanInputs": {"messages": [{"role": "user", "content": "Where?"}]},
        "mlflow.spanOutputs": {"choices": [{"message": message, "finish_reason": None}]},
        "mlflow.chat.tokenUsage": {"input_tokens": 9, "output_tokens": 2},
        "mlflow.llm.model": "known",
        "invocation_params": {"model": "asked", "seed": 7, "stop": None, "_type": "openai-chat", "tools": [TOOL]},
        "metadata": {"thread_id": "s-1", "user_id": "u-1", "lc_agent_name": "support"},
    }

    found = reading(attributes)

    assert found.answer == ChatMessage(role="assistant", parts=(CallPart(tool_name="find", call_id="c1"),))
    assert (found.model, found.answered_model, found.settings) == ("asked", None, {"seed": 7})
    assert found.tools == (ToolDefinition(name="find", parameters={"type": "object"}),)
    assert (found.input_tokens, found.output_tokens, found.finish_reason) == (9, 2, None)
    assert (found.session_id, found.user_id, found.agent_name) == ("s-1", "u-1", "support")


def chunk(number: int, value: dict[str, Any]) -> SpanEvent:
    return SpanEvent(name=f"mlflow.chunk.item.{number}", attributes={"mlflow.chunk.value": json.dumps(value)})


CHUNKS = (
    chunk(0, {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "find"}}]}}]}),
    chunk(1, {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}}]}),
    chunk(2, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
)


def test_streamed_model_call_takes_calls_from_its_chunks():
    found = reading(MODEL, events=CHUNKS)

    assert found.answer is not None
    assert found.answer.parts == (*said("Gone."), CallPart(tool_name="find", call_id="c1", arguments="{}"))
    assert (found.finish_reason, found.response_id) == ("tool_calls", "r")


def test_streamed_model_call_leaves_chunks_that_are_incomplete():
    found = reading(MODEL, events=CHUNKS, dropped=1)

    assert found.answer == ChatMessage(role="assistant", parts=said("Gone."))


def test_streamed_model_call_without_outputs_is_read_from_its_chunks():
    found = reading({"mlflow.spanType": "LLM", "mlflow.spanInputs": "x"}, events=CHUNKS)

    assert found.answer is not None
    assert found.answer.parts == (CallPart(tool_name="find", call_id="c1", arguments="{}"),)


def test_tool_is_named_by_its_function():
    attributes = {"mlflow.spanType": "TOOL", "mlflow.spanInputs": {"q": 1}, "mlflow.spanOutputs": None}

    found = reading(attributes, name="find")

    assert (found.kind, found.tool_name, found.call_id) == ("tool", "find", None)
    assert (found.arguments, found.has_arguments, found.result, found.has_result) == ({"q": 1}, True, None, True)
    assert reading(attributes | {"mlflow.spanFunctionName": "f"}, name="find").tool_name == "f"


def test_tool_of_langchain_answers_with_a_message():
    answer = {"type": "tool", "content": "none", "tool_call_id": "c1"}

    found = reading({"mlflow.spanType": "TOOL", "mlflow.spanOutputs": answer}, name="find")

    assert (found.result, found.call_id, found.has_arguments) == ("none", "c1", False)


def test_tool_that_hands_over_answers_with_its_newest_message():
    messages = [{"type": "human", "content": "Help."}, {"type": "tool", "content": "Over.", "tool_call_id": "c1"}]
    command = {"graph": "__parent__", "update": {"messages": messages}, "goto": "billing"}

    found = reading({"mlflow.spanType": "TOOL", "mlflow.spanOutputs": command}, name="transfer")

    assert (found.result, found.call_id) == ("Over.", "c1")


def test_retrieval_has_query_and_chunks():
    document = {"page_content": "Rinse.", "metadata": {"title": "Manual", "score": 0.5}, "id": "man-12"}
    attributes = {"mlflow.spanType": "RETRIEVER", "mlflow.spanInputs": {"query": "rinse"}}

    found = reading(attributes | {"mlflow.spanOutputs": [document]})

    assert (found.kind, found.query) == ("retrieval", "rinse")
    assert found.chunks == (
        RetrievedChunk(chunk_id="man-12", score=0.5, content="Rinse.", extra={"title": "Manual", "score": 0.5}),
    )
    assert reading(attributes).chunks is None


def test_embedding_has_its_texts_and_no_messages():
    attributes = {"mlflow.spanType": "EMBEDDING", "mlflow.spanInputs": {"model": "small", "input": "a"}}

    found = reading(attributes)

    assert (found.kind, found.embedding_model, found.query, found.messages) == ("embedding", "small", "a", None)


def test_agent_has_input_and_output():
    attributes = {"mlflow.spanType": "AGENT", "mlflow.spanInputs": {"prompt": "Where?"}, "mlflow.spanOutputs": "Gone."}

    found = reading(attributes, name="support")

    assert (found.kind, found.agent_name) == ("agent", "support")
    assert (found.input, found.output) == ({"prompt": "Where?"}, "Gone.")


STATE = {
    "mlflow.spanType": "CHAIN",
    "mlflow.spanInputs": {"messages": [{"role": "user", "content": "Where?"}]},
    "mlflow.spanOutputs": {"messages": [{"type": "human", "content": "Where?"}, {"type": "ai", "content": "Gone."}]},
}


def test_chain_with_the_name_of_an_agent_is_one():
    found = reading(STATE | {"metadata": {"lc_agent_name": "support"}}, name="support")

    assert (found.kind, found.agent_name) == ("agent", "support")
    assert (found.input, found.output) == ("Where?", "Gone.")
    assert [each.role for each in found.conversation or ()] == ["user", "assistant"]


def test_chain_with_another_name_stays_a_chain():
    found = reading(STATE | {"metadata": {"lc_agent_name": "support"}}, name="model", parent_id="3" * 16)

    assert (found.kind, found.conversation) == ("chain", None)


@pytest.mark.parametrize(("kind", "is_harmless"), [("ParentCommand", True), ("ValueError", False)])
def test_exception_that_steers_does_no_harm(kind, is_harmless):
    raised = SpanEvent(name="exception", attributes={"exception.type": kind})

    found = reading({"mlflow.spanType": "CHAIN"}, status="error", events=(raised,))

    assert found.error is not None
    assert (found.error.type, found.is_error_harmless) == (kind, is_harmless)


def test_settings_stay_beside_the_attributes_of_opentelemetry():
    found = reading({"model": "gpt-4o-mini", "seed": 7, "color": "red"}, scope=Scope(name="mlflow.tracing.provider"))

    assert (found.kind, found.model, found.settings) == (None, "gpt-4o-mini", {"seed": 7})
    assert "color" not in found.used


@pytest.mark.parametrize("attributes", [{}, {"model": "gpt-4o-mini", "seed": 7}, {"gen_ai.operation.name": "chat"}])
def test_span_of_others_is_left_alone(attributes):
    assert read(make_span(attributes)) is None


def test_span_whose_values_are_no_json_says_nothing():
    attributes = {"mlflow.spanType": "CHAT_MODEL", "mlflow.spanInputs": '{"messages": [{"role": "us'}
    found = read(Span(trace_id="1" * 32, span_id="2" * 16, attributes=attributes))

    assert found is not None
    assert (found.kind, found.messages, found.answer) == ("model", None, None)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["{", "[1]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
KINDS = st.sampled_from(["CHAT_MODEL", "TOOL", "AGENT", "CHAIN", "RETRIEVER", "EMBEDDING", "?"]) | VALUES
NAMES = st.sampled_from([*MODEL, "metadata", "invocation_params", "tool_call_id", "seed", "mlflow.spanFunctionName"])


@given(KINDS, st.dictionaries(NAMES, VALUES | VALUES.map(repr), max_size=8), VALUES)
def test_nothing_raises_on_any_value(kind, attributes, value):
    attributes["mlflow.spanType"] = kind
    event = SpanEvent(name="mlflow.chunk.item.0", attributes={"mlflow.chunk.value": value})

    found = read(Span(trace_id="1" * 32, span_id="2" * 16, attributes=attributes, events=(event,)))

    assert found is not None
    assert found.used <= attributes.keys()
