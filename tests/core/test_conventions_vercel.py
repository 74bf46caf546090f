"""The Vercel AI SDK's attributes as readings."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.conventions.vercel.span import read
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    Reading,
    ResultPart,
    TextPart,
    ThinkingPart,
    ToolDefinition,
)
from sessions_app.core.spans.span import Span, SpanEvent


def make_span(attributes: dict[str, Any], **fields: Any) -> Span:
    return Span(trace_id="1" * 32, span_id="2" * 16, attributes=attributes, **fields)


def reading(attributes: dict[str, Any], **fields: Any) -> Reading:
    found = read(make_span(attributes, **fields))
    assert found is not None
    return found


MODEL = {
    "ai.operationId": "ai.generateText.doGenerate",
    "ai.model.id": "gpt-4o-mini",
    "ai.model.provider": "openai.chat",
    "ai.prompt.messages": json.dumps(
        [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c1",
                        "toolName": "find",
                        "output": {"type": "json", "value": [1]},
                    }
                ],
            },
        ]
    ),
    "ai.prompt.tools": [json.dumps({"type": "function", "name": "find", "inputSchema": {"type": "object"}})],
    "ai.prompt.toolChoice": '{"type":"auto"}',
    "ai.settings.temperature": 0.2,
    "ai.settings.maxOutputTokens": 400,
    "ai.response.text": "A moment.",
    "ai.response.toolCalls": json.dumps([{"toolCallId": "c2", "toolName": "find", "input": '{"q": 1}'}]),
    "ai.response.finishReason": "tool-calls",
    "ai.response.id": "r",
    "ai.response.model": "gpt-4o-mini-2024",
    "ai.usage.promptTokens": 9,
    "ai.usage.completionTokens": 2,
    "ai.telemetry.functionId": "support",
    "ai.telemetry.metadata.sessionId": "s-1",
    "ai.telemetry.metadata.userId": 42,
    "ai.telemetry.metadata.tenantId": "t-1",
    "ai.telemetry.metadata.team": "kettles",
    "ai.request.headers.user-agent": "ai/5.0.277",
}


def test_model_call_is_read():
    found = reading(MODEL)

    assert (found.kind, found.convention) == ("model", "vercel-ai-sdk")
    assert found.messages == (
        ChatMessage(role="system", parts=(TextPart(text="Be kind."),)),
        ChatMessage(role="user", parts=(TextPart(text="Where?"),)),
        ChatMessage(role="tool", parts=(ResultPart(call_id="c1", tool_name="find", content=[1]),)),
    )
    assert found.answer is not None
    assert found.answer.parts == (
        TextPart(text="A moment."),
        CallPart(tool_name="find", call_id="c2", arguments='{"q": 1}'),
    )
    assert found.tools == (ToolDefinition(name="find", parameters={"type": "object"}),)
    assert found.settings == {"temperature": 0.2, "max_tokens": 400, "tool_choice": "auto"}
    assert (found.model, found.answered_model, found.provider) == ("gpt-4o-mini", "gpt-4o-mini-2024", "openai")
    assert (found.response_id, found.finish_reason) == ("r", "tool-calls")
    assert (found.input_tokens, found.output_tokens) == (9, 2)


def test_model_call_says_whose_it_is():
    found = reading(MODEL)

    assert (found.session_id, found.user_id, found.tenant_id) == ("s-1", "42", "t-1")
    assert (found.agent_name, found.framework_version) == ("support", "5.0.277")
    assert MODEL.keys() - found.used == {"ai.telemetry.metadata.team"}


def test_model_call_counts_what_the_cache_gave():
    quoted = {"anthropic": {"usage": {"input_tokens": 9, "cache_read_input_tokens": 100, "output_tokens": 2}}}

    found = reading(MODEL | {"ai.response.providerMetadata": json.dumps(quoted)})

    assert found.input_tokens == 109


def test_model_call_with_a_whole_count_stays_as_it_is():
    quoted = {"anthropic": {"usage": {"input_tokens": 9, "cache_read_input_tokens": 100, "output_tokens": 2}}}

    found = reading(MODEL | {"ai.usage.promptTokens": 109, "ai.response.providerMetadata": json.dumps(quoted)})

    assert found.input_tokens == 109


def test_streamed_model_call_knows_its_first_token():
    first = SpanEvent(name="ai.stream.firstChunk", time_ns=7)

    found = reading({"ai.operationId": "ai.streamText.doStream"}, events=(first,))

    assert (found.kind, found.first_token_ns) == ("model", 7)
    assert (found.messages, found.answer, found.tools, found.settings) == (None, None, None, None)


def test_object_is_the_answer_of_a_structured_call():
    attributes = {
        "ai.operationId": "ai.generateObject.doGenerate",
        "ai.response.object": '{"a": 1}',
        "ai.response.reasoning": "Hm.",
    }

    found = reading(attributes)

    assert found.answer is not None
    assert found.answer.parts == (ThinkingPart(text="Hm."), TextPart(text='{"a": 1}'))


def test_prompt_that_is_cut_off_is_not_understood():
    found = reading({"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": '[{"role": "user", "con'})

    assert found.messages is None
    assert "ai.prompt.messages" not in found.used


@pytest.mark.parametrize("operation", ["ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"])
def test_span_around_a_run_is_an_agent(operation):
    attributes = {
        "ai.operationId": operation,
        "ai.telemetry.functionId": "support",
        "ai.prompt": json.dumps({"system": "Be kind.", "messages": [{"role": "user", "content": "Where?"}]}),
        "ai.response.text": "Gone.",
        "ai.usage.promptTokens": 9,
    }

    found = reading(attributes)

    assert (found.kind, found.name, found.agent_name) == ("agent", "support", "support")
    assert (found.input, found.output, found.instructions) == ("Where?", "Gone.", "Be kind.")
    assert (found.messages, found.answer, found.input_tokens) == (None, None, None)


def test_agent_without_words_keeps_its_prompt():
    image = {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image", "image": "…"}]}

    found = reading({"ai.operationId": "ai.generateText", "ai.prompt": json.dumps({"messages": [image]})})

    assert found.input == {"messages": [image]}


def test_tool_call_is_read():
    attributes = {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "find",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": '{"q":1}',
        "ai.toolCall.result": '"none"',
    }

    found = reading(attributes)

    assert (found.kind, found.tool_name, found.call_id) == ("tool", "find", "c1")
    assert (found.arguments, found.has_arguments, found.result, found.has_result) == ({"q": 1}, True, "none", True)


def test_tool_call_that_failed_has_no_result():
    raised = SpanEvent(name="exception", attributes={"exception.type": "Busy", "exception.message": "503"})

    found = reading({"ai.operationId": "ai.toolCall"}, status="error", events=(raised,))

    assert (found.has_arguments, found.has_result) == (False, False)
    assert found.error == ErrorInfo(type="Busy", message="503")


def test_embedding_is_read_once():
    inner = {
        "ai.operationId": "ai.embedMany.doEmbed",
        "ai.model.id": "small",
        "ai.values": ['"a"', '"b"'],
        "ai.usage.tokens": 5,
    }

    found, outer = reading(inner), reading(inner | {"ai.operationId": "ai.embedMany"})

    assert (found.kind, found.embedding_model, found.query, found.input_tokens) == ("embedding", "small", ["a", "b"], 5)
    assert (outer.kind, outer.input_tokens) == ("chain", None)


def test_version_7_says_whose_a_run_is_and_leaves_the_rest_to_others():
    found = reading({"ai.settings.context.sessionId": "s-1", "ai.settings.context.userId": "u-1", "gen_ai.system": "x"})

    assert (found.kind, found.session_id, found.user_id, found.settings) == (None, "s-1", "u-1", None)
    assert found.used == {"ai.settings.context.sessionId", "ai.settings.context.userId"}


@pytest.mark.parametrize("attributes", [{}, {"gen_ai.operation.name": "chat"}, {"aim": 1}, {"ai.operationId": 7}])
def test_span_of_others_is_left_alone(attributes):
    assert read(make_span(attributes)) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(['{"a"', "[1]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
OPERATIONS = st.sampled_from(["generateText", "streamText.doStream", "toolCall", "embed.doEmbed", "embed", "?"])
NAMES = st.sampled_from(
    [
        *MODEL,
        "ai.prompt",
        "ai.values",
        "ai.value",
        "ai.toolCall.args",
        "ai.response.object",
        "ai.settings.context.userId",
        "ai.response.providerMetadata",
        "ai.usage.inputTokens",
        "ai.settings.x",
    ]
)


@given(OPERATIONS, st.dictionaries(NAMES, VALUES | VALUES.map(repr), max_size=8))
def test_nothing_raises_on_any_value(operation, attributes):
    attributes["ai.operationId"] = f"ai.{operation}"

    assert reading(attributes).used <= attributes.keys()
