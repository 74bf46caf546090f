"""What is Traceloop's own, as readings, shape by shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.core.conventions.traceloop.span import read
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    OtherPart,
    Reading,
    ResultPart,
    TextPart,
    ThinkingPart,
    ToolDefinition,
)
from sessions_app.core.spans.span import Span, SpanEvent


def make_span(attributes: dict[str, Any], *, raised: str | None = None) -> Span:
    event = SpanEvent(name="exception", attributes={"exception.type": raised, "exception.message": "no"})
    return Span(
        trace_id="a" * 32,
        span_id="b" * 16,
        status="unset" if raised is None else "error",
        attributes=attributes,
        events=() if raised is None else (event,),
    )


def reading_of(attributes: dict[str, Any]) -> Reading:
    found = read(make_span(attributes))
    assert found is not None
    return found


def own(kind: str, **entity: Any) -> Reading:
    return reading_of(
        {"traceloop.span.kind": kind, **{f"traceloop.entity.{key}": item for key, item in entity.items()}}
    )


def messages_of(*flattened: dict[str, Any]) -> tuple[ChatMessage, ...] | None:
    return reading_of(
        {
            f"gen_ai.prompt.{number}.{name}": value
            for number, message in enumerate(flattened)
            for name, value in message.items()
        }
    ).messages


@pytest.mark.parametrize(
    "attributes", [{}, {"gen_ai.prompt": "[]", "gen_ai.completion": "{}"}, {"gen_ai.input.messages": "[]"}]
)
def test_read_knows_nothing_of_other_spans(attributes: dict[str, Any]):
    assert read(make_span(attributes)) is None


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"llm.request.type": "chat"}, "model"),
        ({"llm.request.type": "completion"}, "model"),
        ({"llm.request.type": "embedding"}, "embedding"),
        ({"llm.request.type": "rerank"}, "retrieval"),
        ({"gen_ai.completion.0.content": "Hi"}, "model"),
        ({"traceloop.span.kind": "tool"}, "tool"),
        ({"traceloop.span.kind": "agent"}, "agent"),
        ({"traceloop.span.kind": "handoff"}, "handoff"),
        ({"traceloop.span.kind": "workflow"}, "chain"),
        ({"traceloop.span.kind": "task"}, "chain"),
        ({"traceloop.span.kind": "task", "gen_ai.operation.name": "vector_db_retrieve"}, None),
        ({"traceloop.span.kind": "agent", "gen_ai.operation.name": "invoke_agent"}, "agent"),
        ({"traceloop.span.kind": "anything"}, "chain"),
        ({"traceloop.workflow.name": "support"}, None),
    ],
)
def test_read_names_the_kind(attributes: dict[str, Any], expected: str | None):
    assert reading_of(attributes).kind == expected


def test_messages_are_read_with_their_calls_and_results():
    found = messages_of(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "tool_calls.0.id": "c-1", "tool_calls.0.name": "find", "tool_calls.0.arguments": "{}"},
        {"role": "tool", "content": '[{"type": "text"}]', "tool_call_id": "c-1"},
    )

    assert found == (
        ChatMessage(role="system", parts=(TextPart(text="Be brief."),)),
        ChatMessage(role="user", parts=(TextPart(text="Where is it?"),)),
        ChatMessage(role="assistant", parts=(CallPart(tool_name="find", call_id="c-1", arguments="{}"),)),
        ChatMessage(role="tool", parts=(ResultPart(call_id="c-1", content='[{"type": "text"}]'),)),
    )


def test_content_lists_are_read_in_the_words_of_the_provider():
    image = {"type": "image", "source": {"type": "url"}}
    said = [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "text", "text": "Look:"},
        image,
        {"type": "tool_use", "id": "c-1", "name": "find", "input": {"a": 1}},
    ]
    answered = [
        {"type": "tool_result", "tool_use_id": "c-1", "content": "[]", "is_error": True},
        {"type": "text", "text": "And now?"},
    ]

    found = messages_of(
        {"role": "assistant", "content": json.dumps(said)}, {"role": "user", "content": json.dumps(answered)}
    )

    assert found == (
        ChatMessage(
            role="assistant",
            parts=(
                ThinkingPart(text="Hm.", signature="sig"),
                TextPart(text="Look:"),
                OtherPart(kind="image", value=image),
                CallPart(tool_name="find", call_id="c-1", arguments={"a": 1}),
            ),
        ),
        ChatMessage(role="tool", parts=(ResultPart(call_id="c-1", content="[]", is_error=True),)),
        ChatMessage(role="user", parts=(TextPart(text="And now?"),)),
    )


@pytest.mark.parametrize("content", ['[{"type": "order", "id": 1}]', "[1, 2]", "[]", '[{"type": "text"', '{"a": 1}'])
def test_other_lists_are_the_words_of_the_user(content: str):
    assert messages_of({"role": "user", "content": content}) == (
        ChatMessage(role="user", parts=(TextPart(text=content),)),
    )


def test_messages_without_content_are_not_captured():
    assert messages_of({"role": "user"}, {"role": "assistant"}) is None


def test_the_first_choice_is_the_answer():
    start = "gen_ai.completion"
    found = reading_of(
        {
            f"{start}.0.role": "assistant",
            f"{start}.0.content": '""',
            f"{start}.0.finish_reason": "tool_calls",
            f"{start}.0.tool_calls.0.id": "c-1",
            f"{start}.0.tool_calls.0.name": "find",
            f"{start}.0.tool_calls.0.arguments": '{"a": 1}',
            f"{start}.1.content": "Another",
        }
    )

    call = CallPart(tool_name="find", call_id="c-1", arguments='{"a": 1}')
    assert found.answer == ChatMessage(role="assistant", parts=(call,))
    assert found.finish_reason == "tool_calls"


def test_an_answer_with_a_role_alone_is_not_captured():
    assert reading_of({"gen_ai.completion.0.role": "assistant"}).answer is None
    assert reading_of({"gen_ai.completion.0.content": ""}).answer is not None


@pytest.mark.parametrize(
    ("asked", "answered", "expected"), [(12, 3, (12, 3)), (12, 0, (12, 0)), (0, 0, (None, None)), (12, "x", (12, None))]
)
def test_usage_of_zero_was_not_told(asked: Any, answered: Any, expected: tuple[Any, Any]):
    found = reading_of(
        {
            "llm.request.type": "chat",
            "gen_ai.usage.prompt_tokens": asked,
            "gen_ai.usage.completion_tokens": answered,
        }
    )

    assert (found.input_tokens, found.output_tokens) == expected


def test_offered_functions_are_tools():
    start = "llm.request.functions"
    found = reading_of(
        {
            "llm.request.type": "chat",
            f"{start}.0.name": "find",
            f"{start}.0.description": "Finds.",
            f"{start}.0.parameters": '{"type": "object"}',
            f"{start}.1.name": "stop",
            f"{start}.1.parameters": "{cut off",
            f"{start}.2.description": "Nameless.",
        }
    )

    assert found.tools == (
        ToolDefinition(name="find", description="Finds.", parameters={"type": "object"}),
        ToolDefinition(name="stop"),
    )


def test_an_embedding_has_its_texts_as_input():
    texts = {f"gen_ai.prompt.{number}.content": text for number, text in enumerate("ab")}

    found = reading_of({"llm.request.type": "embedding", "gen_ai.request.model": "e-1", **texts})

    assert (found.embedding_model, found.input, found.messages) == ("e-1", ["a", "b"], None)


def test_a_tool_of_ones_own_has_arguments_and_result():
    found = own("tool", name="find", input='{"args": [], "kwargs": {"a": 1}}', output='"09:30"')

    assert (found.tool_name, found.arguments, found.has_arguments) == ("find", {"a": 1}, True)
    assert (found.result, found.has_result) == ("09:30", True)


def test_a_tool_without_content_has_neither():
    found = own("tool", name="find")

    assert (found.has_arguments, found.has_result) == (False, False)


def test_the_wrappers_of_a_callback_are_taken_off():
    asked = {"input_str": "{'a': 1}", "tags": [], "inputs": {"a": 1}, "kwargs": {"tool_call_id": "c-0"}}
    message = {"lc": 1, "kwargs": {"content": "09:30", "tool_call_id": "c-1"}}

    found = own("tool", input=json.dumps(asked), output=json.dumps({"output": message, "kwargs": {}}))

    assert (found.arguments, found.result, found.call_id) == ({"a": 1}, "09:30", "c-1")


def test_the_text_of_the_input_serves_where_there_are_no_inputs():
    assert own("tool", input='{"input_str": "Oslo", "inputs": null}').arguments == "Oslo"


def test_a_result_that_only_looks_like_a_wrapper_stays():
    assert own("tool", output='{"output": 1}').result == {"output": 1}
    assert own("tool", output='{"output": 1, "kwargs": {}, "more": 2}').result == {"output": 1, "kwargs": {}, "more": 2}


def test_a_tool_message_may_tell_of_an_error():
    message = {"content": "Error: no", "tool_call_id": "c-1", "status": "error"}

    assert own("tool", output=json.dumps(message)).error == ErrorInfo(type=None, message="Error: no")
    assert own("tool", output=json.dumps({**message, "status": "success"})).error is None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ('{"args": ["Hello"], "kwargs": {}}', "Hello"),
        ('{"args": [], "kwargs": {"q": 1}}', {"q": 1}),
        ('{"args": ["a", "b"], "kwargs": {}}', {"args": ["a", "b"], "kwargs": {}}),
        ('{"args": ["a"], "kwargs": {"q": 1}}', {"args": ["a"], "kwargs": {"q": 1}}),
        ('{"inputs": {"q": 1}, "tags": [], "metadata": {}, "kwargs": {}}', {"q": 1}),
        ('{"inputs": {"q": 1}}', {"inputs": {"q": 1}}),
        ("plain words", "plain words"),
    ],
)
def test_an_agent_has_the_input_that_it_was_called_with(asked: str, expected: Any):
    assert own("agent", input=asked).input == expected


def test_an_agent_has_a_name_and_an_output():
    found = own("agent", name="support", output='{"outputs": {"a": 1}, "kwargs": {}}')

    assert (found.name, found.agent_name, found.output) == ("support", "support", {"a": 1})


def test_a_workflow_is_no_agent():
    found = reading_of({"traceloop.span.kind": "workflow", "traceloop.workflow.name": "support"})

    assert (found.name, found.agent_name) == ("support", None)


def test_an_agent_is_not_named_like_the_workflow_around_it():
    found = reading_of({"traceloop.span.kind": "agent", "traceloop.workflow.name": "support"})

    assert (found.name, found.agent_name) == (None, None)


def test_the_owner_stands_in_the_properties():
    start = "traceloop.association.properties"
    found = reading_of(
        {f"{start}.session_id": "s", f"{start}.user_id": 7, f"{start}.tenant": "t", f"{start}.team": "x"}
    )

    assert (found.session_id, found.user_id, found.tenant_id) == ("s", "7", "t")
    assert f"{start}.team" not in found.used


def test_the_owner_may_stand_in_the_metadata_of_a_callback():
    metadata = {"metadata": {"thread_id": "s", "user_id": "u"}, "inputs": {}}

    inside = own("task", input=json.dumps({**metadata, "kwargs": {}}))
    of_the_team = own("task", input=json.dumps(metadata))

    assert (inside.session_id, inside.user_id) == ("s", "u")
    assert of_the_team.session_id is None


@pytest.mark.parametrize(
    ("raised", "is_harmless"),
    [("langgraph.errors.ParentCommand", True), ("GraphInterrupt", True), ("builtins.ValueError", False)],
)
def test_an_exception_is_the_error_unless_it_only_steers(raised: str, is_harmless: bool):
    found = read(make_span({"traceloop.span.kind": "task"}, raised=raised))

    assert found is not None
    assert (found.error, found.is_error_harmless) == (ErrorInfo(type=raised, message="no"), is_harmless)


NAMES = st.sampled_from(
    [
        "llm.request.type",
        "llm.request.functions.0.name",
        "llm.request.functions.0.parameters",
        "gen_ai.prompt.0.role",
        "gen_ai.prompt.0.content",
        "gen_ai.prompt.0.tool_call_id",
        "gen_ai.prompt.0.tool_calls.0.name",
        "gen_ai.prompt.0.tool_calls.0.arguments",
        "gen_ai.prompt.999999999999999999999.content",
        "gen_ai.completion.0.content",
        "gen_ai.completion.0.finish_reason",
        "gen_ai.usage.prompt_tokens",
        "traceloop.span.kind",
        "traceloop.entity.name",
        "traceloop.entity.input",
        "traceloop.entity.output",
        "traceloop.association.properties.session_id",
    ]
)
WORDS = st.sampled_from(
    [
        "args",
        "kwargs",
        "inputs",
        "outputs",
        "output",
        "metadata",
        "input_str",
        "type",
        "text",
        "content",
        "tool_call_id",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS
    | st.sampled_from(["chat", "embedding", "tool", "agent", "task", "text", "tool_use", "thinking", "[1e999]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(NAMES, VALUES | VALUES.map(json.dumps)))
def test_read_never_raises(attributes: dict[str, Any]):
    found = read(make_span(attributes))

    assert found is None or found.used <= attributes.keys()
