"""OpenInference's attributes as readings, shape by shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.core.conventions.numbered import below, numbered
from sessions_app.core.conventions.openinference.span import read
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    OtherPart,
    Reading,
    ResultPart,
    RetrievedChunk,
    TextPart,
    ThinkingPart,
    ToolDefinition,
)
from sessions_app.core.spans.span import Span, SpanEvent, SpanStatus


def make_span(
    kind: str | None = "LLM", *, name: str = "work", status: SpanStatus = "ok", error: str | None = None, **said: Any
) -> Span:
    attributes = {key.replace("__", "."): value for key, value in said.items()}
    if kind is not None:
        attributes["openinference.span.kind"] = kind
    raised = SpanEvent(name="exception", attributes={"exception.type": error, "exception.message": "no"})
    return Span(
        trace_id="a" * 32,
        span_id="b" * 16,
        name=name,
        status=status,
        attributes=attributes,
        events=() if error is None else (raised,),
    )


def reading_of(kind: str | None = "LLM", **said: Any) -> Reading:
    found = read(make_span(kind, **said))
    assert found is not None
    return found


def model_reading(attributes: dict[str, Any]) -> Reading:
    return reading_of("LLM", **attributes)


def messages_of(*flattened: dict[str, Any]) -> tuple[ChatMessage, ...] | None:
    return model_reading(
        {
            f"llm.input_messages.{number}.{name}": value
            for number, message in enumerate(flattened)
            for name, value in message.items()
        }
    ).messages


def test_numbered_puts_groups_in_the_order_of_their_numbers():
    assert numbered({"10.a": 1, "2.a": 2, "2.b": 3, "0": 4}) == [{"": 4}, {"a": 2, "b": 3}, {"a": 1}]


def test_numbered_leaves_no_gap_for_a_huge_number():
    assert numbered({"999999999.a": 1, "0.a": 2}) == [{"a": 2}, {"a": 1}]


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "x", "", "²", "٣", "1e3", " 1"])
def test_numbered_leaves_out_what_is_no_position(number: str):
    assert numbered({f"{number}.a": 1}) == []


def test_below_takes_the_prefix_away():
    assert below({"a.b": 1, "b.a": 2}, "a.") == {"b": 1}


def test_read_knows_nothing_of_other_spans():
    assert read(make_span(None, session__id="s-1", gen_ai__operation__name="chat")) is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("LLM", "model"),
        ("tool", "tool"),
        ("AGENT", "agent"),
        ("CHAIN", "chain"),
        ("RETRIEVER", "retrieval"),
        ("RERANKER", "retrieval"),
        ("EMBEDDING", "embedding"),
        ("GUARDRAIL", "chain"),
        ("EVALUATOR", "chain"),
        ("SOMETHING", "chain"),
        (7, "chain"),
    ],
)
def test_read_names_the_kind(kind: Any, expected: str):
    assert reading_of(kind).kind == expected


def test_read_tells_the_kind_by_the_attributes_where_none_is_named():
    assert reading_of(None, **{"llm.token_count.prompt": 3}).kind == "model"
    assert reading_of(None, **{"retrieval.documents.0.document.id": "a"}).kind == "retrieval"


def test_messages_keep_their_order_and_roles():
    assert messages_of(
        {"message.role": "system", "message.content": "Be brief."},
        {"message.role": "human", "message.content": "Hello"},
    ) == (
        ChatMessage(role="system", parts=(TextPart(text="Be brief."),)),
        ChatMessage(role="user", parts=(TextPart(text="Hello"),)),
    )


def test_a_message_asks_for_tools_and_another_brings_their_answer():
    asks = {
        "message.role": "assistant",
        "message.content": "",
        "message.tool_calls.0.tool_call.id": "c-1",
        "message.tool_calls.0.tool_call.function.name": "find",
        "message.tool_calls.0.tool_call.function.arguments": '{"a": 1}',
        "message.tool_calls.1.tool_call.id": None,
        "message.tool_calls.1.tool_call.function.name": None,
    }
    brings = {"message.role": "tool", "message.tool_call_id": "c-1", "message.name": "find", "message.content": "[]"}

    assert messages_of(asks, brings) == (
        ChatMessage(role="assistant", parts=(CallPart(tool_name="find", call_id="c-1", arguments='{"a": 1}'),)),
        ChatMessage(role="tool", parts=(ResultPart(call_id="c-1", tool_name="find", content="[]"),)),
    )


def test_arguments_that_were_encoded_twice_are_decoded_once():
    call = "message.tool_calls.0.tool_call.function."

    found = messages_of({f"{call}name": "find", f"{call}arguments": '"{\\"a\\": 1}"'})

    assert found == (ChatMessage(role="assistant", parts=(CallPart(tool_name="find", arguments='{"a": 1}'),)),)


@pytest.mark.parametrize("arguments", ['"just words"', '{"a": "1"}', '"cut off', {"a": 1}])
def test_other_arguments_stay_as_they_came(arguments: Any):
    call = "message.tool_calls.0.tool_call.function."

    found = messages_of({f"{call}name": "find", f"{call}arguments": arguments})

    assert found == (ChatMessage(role="assistant", parts=(CallPart(tool_name="find", arguments=arguments),)),)


def test_contents_give_text_thoughts_calls_and_images_in_order():
    content = "message.contents"
    found = messages_of(
        {
            "message.role": "assistant",
            f"{content}.0.message_content.type": "reasoning",
            f"{content}.0.message_content.text": "Hm.",
            f"{content}.0.message_content.signature": "sig",
            f"{content}.1.message_content.type": "text",
            f"{content}.1.message_content.text": "Look:",
            f"{content}.1.message_content.image": None,
            f"{content}.2.message_content.type": "image",
            f"{content}.2.message_content.image.image.url": "https://x.test/a.png",
            f"{content}.3.message_content.type": "tool_use",
            f"{content}.3.tool_call.id": "c-1",
            f"{content}.3.tool_call.function.name": "find",
            f"{content}.3.tool_call.function.arguments": "{}",
            f"{content}.4.message_content.type": "tool_use",
            "message.content": "Look:",
            "message.tool_calls.0.tool_call.id": "c-1",
            "message.tool_calls.0.tool_call.function.name": "find",
            "message.tool_calls.0.tool_call.function.arguments": "{}",
        }
    )

    assert found == (
        ChatMessage(
            role="assistant",
            parts=(
                ThinkingPart(text="Hm.", signature="sig"),
                TextPart(text="Look:"),
                OtherPart(kind="image", value={"image.image.url": "https://x.test/a.png"}),
                CallPart(tool_name="find", call_id="c-1", arguments="{}"),
            ),
        ),
    )


def test_the_wrapper_of_a_tool_result_is_taken_off():
    found = messages_of(
        {"message.role": "tool", "message.tool_call_id": "a", "message.content": '{"type":"json","value":{"n":1}}'},
        {"message.role": "tool", "message.tool_call_id": "b", "message.content": '{"type":"error-text","value":"no"}'},
        {"message.role": "tool", "message.tool_call_id": "c", "message.content": '{"type":"json","value":1,"n":2}'},
    )

    assert [message.parts for message in found or ()] == [
        (ResultPart(call_id="a", content={"n": 1}),),
        (ResultPart(call_id="b", content="no", is_error=True),),
        (ResultPart(call_id="c", content='{"type":"json","value":1,"n":2}'),),
    ]


def test_messages_without_content_are_not_captured():
    assert messages_of({"message.role": "user"}) is None
    assert messages_of({"message.role": "user", "message.content": "__REDACTED__"}) is None
    assert messages_of({"message.role": "user", "message.content": ""}) is not None


def test_the_items_of_one_answer_become_one_message():
    out = "llm.output_messages"
    said = {
        f"{out}.0.message.role": "assistant",
        f"{out}.0.message.content": "Let me look.",
        f"{out}.1.message.tool_calls.0.tool_call.function.name": "find",
    }
    both = (TextPart(text="Let me look."), CallPart(tool_name="find"))

    assert model_reading(said).answer == ChatMessage(role="assistant", parts=both)
    several = {**said, "llm.invocation_parameters": '{"n": 2}'}
    assert model_reading(several).answer == ChatMessage(role="assistant", parts=both[:1])


def test_an_answer_that_is_only_a_text_may_be_the_output_alone():
    said = {"llm.input_messages.0.message.content": "Hi", "output.value": "Hello!", "output.mime_type": "text/plain"}

    assert model_reading(said).answer == ChatMessage(role="assistant", parts=(TextPart(text="Hello!"),))
    assert model_reading({**said, "output.mime_type": "application/json"}).answer is None


def test_completions_of_a_text_are_messages_too():
    found = model_reading({"llm.prompts.0.prompt.text": "Once", "llm.choices.0.completion.text": "upon"})

    assert found.messages == (ChatMessage(role="user", parts=(TextPart(text="Once"),)),)
    assert found.answer == ChatMessage(role="assistant", parts=(TextPart(text="upon"),))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": {"type": "object"}}},
        {"name": "find", "description": "Finds.", "input_schema": {"type": "object"}},
        {"type": "function", "name": "find", "description": "Finds.", "parameters": {"type": "object"}},
        {"toolSpec": {"name": "find", "description": "Finds.", "inputSchema": {"json": {"type": "object"}}}},
    ],
)
def test_tools_are_read_in_every_spelling(schema: dict[str, Any]):
    found = model_reading({"llm.tools.0.tool.json_schema": json.dumps(schema)})

    assert found.tools == (ToolDefinition(name="find", description="Finds.", parameters={"type": "object"}),)


def test_a_tool_without_a_name_is_none():
    assert model_reading({"llm.tools.0.tool.json_schema": '{"parameters": {}}'}).tools is None


def test_settings_leave_out_messages_tools_and_connection():
    sent = {
        "model": "m",
        "temperature": 0.2,
        "seed": 7,
        "own": 1,
        "stop": None,
        "n": 0,
        "model_kwargs": {},
        "tools": [{}],
        "api_key": "k",
    }

    found = model_reading({"llm.invocation_parameters": json.dumps(sent)})

    assert found.settings == {"temperature": 0.2, "seed": 7, "own": 1, "n": 0}


def test_settings_of_a_whole_response_are_the_known_ones():
    sent = {"id": "resp_1", "created_at": 1, "temperature": 0.2, "instructions": "x", "store": True, "model": "m-1"}

    found = model_reading({"llm.invocation_parameters": json.dumps(sent), "llm.model_name": "m-1"})

    assert (found.settings, found.model, found.answered_model) == ({"temperature": 0.2}, None, "m-1")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"llm.model_name": "m"}, ("m", None)),
        ({"llm.model_name": "m", "llm.invocation_parameters": '{"model": "m"}'}, ("m", None)),
        ({"llm.model_name": "m-1", "llm.invocation_parameters": '{"model": "m"}'}, ("m", "m-1")),
        ({"llm.invocation_parameters": '{"model": "m"}'}, ("m", None)),
        ({"llm.model_name": "m", "llm.request.model_name": "m", "llm.response.model_name": "m"}, ("m", "m")),
    ],
)
def test_the_model_is_the_requested_one_where_the_span_tells(said: dict[str, Any], expected: tuple[Any, Any]):
    found = model_reading(said)

    assert (found.model, found.answered_model) == expected


def test_usage_and_finish_reason_are_read():
    found = model_reading(
        {
            "llm.token_count.prompt": 12,
            "llm.token_count.completion": "3",
            "llm.finish_reason": "stop",
            "llm.provider": "openai",
        }
    )

    assert (found.input_tokens, found.output_tokens) == (12, 3)
    assert (found.finish_reason, found.provider) == ("stop", "openai")


def test_the_preparation_of_a_request_is_no_model_call():
    prepared = {"input.value": '{"tools": ["<object>"], "chat_history": []}', "llm.model_name": "m"}

    assert model_reading(prepared).kind == "chain"
    assert model_reading({**prepared, "llm.token_count.prompt": 3}).kind == "model"
    assert model_reading({**prepared, "input.value": '{"messages": []}'}).kind == "model"
    failed = read(make_span("LLM", status="error", **prepared))
    assert failed is not None
    assert failed.kind == "model"


def test_the_raw_request_is_left_to_others_where_no_messages_are():
    raw = {"input.value": '{"messages": [{"role": "user", "content": "Hi"}]}', "input.mime_type": "application/json"}

    alone = model_reading(raw)
    beside = model_reading({**raw, "llm.input_messages.0.message.content": "Hi"})

    assert alone.input == {"messages": [{"role": "user", "content": "Hi"}]}
    assert ("input.value" in alone.used, "input.value" in beside.used) == (False, True)


def tool_reading(value: Any, output: Any = None, **more: Any) -> Reading:
    json_type = "application/json"
    said = {"input.value": value, "input.mime_type": json_type, "output.value": output, "output.mime_type": json_type}
    return reading_of("TOOL", **{**said, **more})


def test_a_tool_has_arguments_and_result():
    found = tool_reading('{"a": 1}', "[]", **{"tool.name": "find", "tool_call.id": "c-1", "tool.parameters": "{}"})

    assert (found.tool_name, found.call_id) == ("find", "c-1")
    assert (found.arguments, found.has_arguments) == ({"a": 1}, True)
    assert (found.result, found.has_result) == ([], True)
    assert "tool.parameters" not in found.used


def test_a_tool_without_content_has_neither():
    found = reading_of("TOOL", name="find", **{"input.value": "__REDACTED__"})

    assert (found.tool_name, found.has_arguments, found.has_result) == ("find", False, False)


def test_text_of_a_tool_stays_text():
    found = reading_of("TOOL", **{"input.value": "Oslo", "output.value": "[1]", "output.mime_type": "text/plain"})

    assert (found.arguments, found.result) == ("Oslo", "[1]")


def test_named_arguments_are_unwrapped():
    assert tool_reading('{"kwargs": {"a": 1}}').arguments == {"a": 1}
    assert tool_reading('{"args": [2], "kwargs": {"a": 1}}').arguments == {"args": [2], "kwargs": {"a": 1}}
    assert tool_reading('{"kwargs": {"a": 1}, "b": 2}').arguments == {"kwargs": {"a": 1}, "b": 2}


def test_a_tool_call_object_is_unwrapped():
    found = tool_reading('{"name": "find", "args": {"a": 1}, "id": "c-1", "type": "tool_call"}')

    assert (found.arguments, found.call_id) == ({"a": 1}, "c-1")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda message: {"type": "tool", "data": message},
        lambda message: {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": message},
        lambda message: message,
        lambda message: {"graph": "up", "update": {"messages": [{"type": "human"}, {"kwargs": message}]}},
    ],
)
def test_a_tool_message_is_unwrapped(wrap: Any):
    message = {"content": "09:30", "tool_call_id": "c-1", "status": "success"}

    found = tool_reading("{}", json.dumps(wrap(message)))

    assert (found.result, found.call_id, found.error) == ("09:30", "c-1", None)


@pytest.mark.parametrize(
    "answer",
    [
        {"blocks": [{"text": "a"}]},
        {"content": "a", "id": "c-1"},
        {"update": {"messages": []}},
        {"update": {"messages": [{"update": {"messages": [{"content": "a", "tool_call_id": "c-1"}]}}]}},
    ],
)
def test_another_object_stays_as_the_tool_gave_it(answer: dict[str, Any]):
    assert tool_reading("{}", json.dumps(answer)).result == answer


def test_a_tool_message_may_tell_of_an_error():
    found = tool_reading("{}", '{"content": "Error: no", "tool_call_id": "c-1", "status": "error"}')

    assert found.error == ErrorInfo(type=None, message="Error: no")


def test_a_tool_output_gives_what_the_model_was_given():
    output = {"blocks": [{"text": "a"}, {"text": "b"}], "raw_output": {"a": 1}, "is_error": False}

    assert tool_reading("{}", json.dumps(output)).result == "a\nb"
    other = {"blocks": [{"text": "a"}, {"image": "b"}], "raw_output": {"a": 1}}
    assert tool_reading("{}", json.dumps(other)).result == other


def test_a_search_has_a_query_and_chunks():
    document = "retrieval.documents.0.document"
    found = reading_of(
        "RETRIEVER",
        **{
            "input.value": "descaler",
            f"{document}.id": "man-12",
            f"{document}.content": "Hold the button.",
            f"{document}.score": 0.49,
            f"{document}.metadata": '{"title": "Manual"}',
        },
    )

    chunk = RetrievedChunk(
        chunk_id="man-12", score=0.49, content="Hold the button.", extra={"metadata": {"title": "Manual"}}
    )
    assert (found.query, found.chunks) == ("descaler", (chunk,))


def test_the_ids_of_chunks_may_stand_in_the_output():
    said = {"retrieval.documents.0.document.content": "x", "output.mime_type": "application/json"}

    same = reading_of("RETRIEVER", **said, **{"output.value": '{"documents": [{"id": "man-12"}]}'})
    more = reading_of("RETRIEVER", **said, **{"output.value": '{"documents": [{"id": "man-12"}, {"id": "b"}]}'})

    assert [chunk.chunk_id for chunk in (*(same.chunks or ()), *(more.chunks or ()))] == ["man-12", None]


def test_a_search_that_found_nothing_is_not_one_without_content():
    assert reading_of("RETRIEVER", **{"output.value": "[]"}).chunks == ()
    assert reading_of("RETRIEVER").chunks is None


def test_a_reranker_gives_its_output_documents():
    found = reading_of(
        "RERANKER",
        **{
            "reranker.query": "kettle",
            "reranker.input_documents.0.document.id": "a",
            "reranker.output_documents.0.document.id": "b",
        },
    )

    assert (found.query, found.chunks) == ("kettle", (RetrievedChunk(chunk_id="b"),))


def test_an_embedding_turns_texts_into_vectors():
    item = "embedding.embeddings"
    found = reading_of(
        "EMBEDDING",
        **{
            "embedding.model_name": "e-1",
            f"{item}.0.embedding.text": "a",
            f"{item}.0.embedding.vector": [0.5],
            f"{item}.1.embedding.text": "b",
            f"{item}.1.embedding.vector": [0.25],
        },
    )

    assert (found.embedding_model, found.input, found.output) == ("e-1", ["a", "b"], [[0.5], [0.25]])


def test_an_agent_has_input_output_and_a_name():
    said = {
        "input.value": '{"q": 1}',
        "input.mime_type": "application/json",
        "output.value": "Done.",
        "agent.name": "A",
    }

    found = reading_of("AGENT", **said)

    assert (found.input, found.output, found.agent_name, found.conversation) == ({"q": 1}, "Done.", "A", None)


def test_work_inside_an_agent_is_not_named_like_it():
    said = {"metadata": '{"lc_agent_name": "support"}'}

    assert [(reading_of(kind, **said).name, reading_of(kind, **said).agent_name) for kind in ("AGENT", "CHAIN")] == [
        ("support", "support"),
        (None, "support"),
    ]


def test_an_agent_with_both_ends_has_a_conversation():
    asked = {"llm.input_messages.0.message.content": "Hi"}
    both = {**asked, "llm.output_messages.0.message.content": "Hello"}

    assert reading_of("AGENT", **both).conversation == (
        ChatMessage(role="user", parts=(TextPart(text="Hi"),)),
        ChatMessage(role="assistant", parts=(TextPart(text="Hello"),)),
    )
    assert reading_of("AGENT", **asked).conversation is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"session.id": "s", "user.id": 7}, ("s", "7", None)),
        ({"session.id": "s", "metadata": '{"session_id": "other", "tenantId": "t"}'}, ("s", None, "t")),
        ({"metadata": '{"thread_id": "s", "user_id": "u"}'}, ("s", "u", None)),
        ({"metadata.sessionId": "s", "metadata.userId": "u"}, ("s", "u", None)),
        ({"llm.invocation_parameters": '{"user": "u", "metadata": {"session_id": "s"}}'}, ("s", "u", None)),
        ({"metadata": "{cut off", "session.id": "", "user.id": True}, (None, None, None)),
    ],
)
def test_the_owner_stands_in_attributes_or_metadata(said: dict[str, Any], expected: tuple[Any, ...]):
    found = model_reading(said)

    assert (found.session_id, found.user_id, found.tenant_id) == expected


def test_metadata_is_left_to_be_seen():
    found = model_reading({"metadata": '{"session_id": "s"}', "metadata.sessionId": "s", "metadata.team": "a"})

    assert {"metadata", "metadata.team"} & found.used == set()


def test_an_exception_is_the_error_unless_it_only_steers():
    failed = read(make_span("TOOL", status="error", error="builtins.ValueError"))
    steered = read(make_span("CHAIN", status="error", error="langgraph.errors.ParentCommand"))

    assert failed is not None
    assert steered is not None
    assert (failed.error, failed.is_error_harmless) == (ErrorInfo(type="builtins.ValueError", message="no"), False)
    assert steered.is_error_harmless


NAMES = st.sampled_from(
    [
        "openinference.span.kind",
        "input.value",
        "input.mime_type",
        "output.value",
        "output.mime_type",
        "llm.invocation_parameters",
        "llm.model_name",
        "llm.request.model_name",
        "llm.prompts",
        "llm.prompts.0.prompt.text",
        "llm.choices.0.completion.text",
        "llm.token_count.prompt",
        "llm.input_messages.0.message.role",
        "llm.input_messages.0.message.content",
        "llm.input_messages.0.message.tool_call_id",
        "llm.input_messages.0.message.contents.0.message_content.type",
        "llm.input_messages.0.message.contents.0.message_content.text",
        "llm.input_messages.0.message.contents.0.tool_call.function.name",
        "llm.input_messages.0.message.tool_calls.0.tool_call.function.name",
        "llm.input_messages.0.message.tool_calls.0.tool_call.function.arguments",
        "llm.input_messages.x",
        "llm.output_messages.7.message.content",
        "llm.tools.0.tool.json_schema",
        "tool.name",
        "retrieval.documents.0.document.score",
        "retrieval.documents.0.document.metadata",
        "reranker.query",
        "embedding.embeddings.0.embedding.vector",
        "metadata",
        "session.id",
        "metadata.userId",
    ]
)
WORDS = st.sampled_from(
    ["messages", "update", "data", "kwargs", "content", "tool_call_id", "type", "value", "blocks", "raw_output", "n"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS
    | st.sampled_from(["LLM", "TOOL", "RETRIEVER", "EMBEDDING", "AGENT", "__REDACTED__", "text", "tool", "[1e999]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(NAMES, VALUES | VALUES.map(json.dumps)))
def test_read_never_raises(attributes: dict[str, Any]):
    found = read(make_span(None, **attributes))

    assert found is None or found.used <= attributes.keys()
