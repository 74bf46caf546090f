"""Providers' own JSON as messages, requests, responses and tools."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.spans.provider_messages import failure_of, messages_of, request_of, response_of, tools_of
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    OtherPart,
    Part,
    ResultPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolDefinition,
)


def message(role: Role, *parts: Part | str) -> ChatMessage:
    return ChatMessage(role=role, parts=tuple(TextPart(text=each) if isinstance(each, str) else each for each in parts))


CALL = CallPart(tool_name="find", call_id="c1", arguments={"q": 1})
CALL_AS_TEXT = CallPart(tool_name="find", call_id="c1", arguments='{"q": 1}')
NAMELESS_CALL = CallPart(tool_name="find", arguments={"q": 1})
RESULT = ResultPart(call_id="c1", content="none")
NAMED_RESULT = ResultPart(call_id="c1", tool_name="find", content="none")

CONVERSATIONS: dict[str, tuple[list[Any], list[ChatMessage]]] = {
    "openai chat": (
        [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "none"},
        ],
        [
            message("system", "Be kind."),
            message("user", "Where?"),
            message("assistant", CALL_AS_TEXT),
            message("tool", RESULT),
        ],
    ),
    "openai responses": (
        [
            {"role": "user", "content": [{"type": "input_text", "text": "Where?"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look."}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find", "arguments": '{"q": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "none"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Gone."}]},
        ],
        [
            message("user", "Where?"),
            message("assistant", ThinkingPart(text="Look.", id="rs_1"), CALL_AS_TEXT),
            message("tool", RESULT),
            message("assistant", "Gone."),
        ],
    ),
    "anthropic": (
        [
            {"role": "user", "content": "Where?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Look.", "signature": "s"},
                    {"type": "text", "text": "A moment."},
                    {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "none"}]},
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
        [
            message("user", "Where?"),
            message("assistant", ThinkingPart(text="Look.", signature="s"), "A moment.", CALL),
            message("tool", RESULT),
            message("user", "And?"),
        ],
    ),
    "bedrock": (
        [
            {"role": "user", "content": [{"text": "Where?"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "find", "input": {"q": 1}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"json": {"n": 0}}]}}]},
        ],
        [
            message("user", "Where?"),
            message("assistant", CALL),
            message("tool", ResultPart(call_id="c1", content={"n": 0})),
        ],
    ),
    "google": (
        [
            {"parts": [{"text": "Where?", "function_call": None}]},
            {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"q": 1}}}]},
            {"role": "user", "parts": [{"function_response": {"name": "find", "response": {"n": 0}}}]},
        ],
        [
            message("user", "Where?"),
            message("assistant", NAMELESS_CALL),
            message("tool", ResultPart(tool_name="find", content={"n": 0})),
        ],
    ),
    "langchain, serialised": (
        [
            {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Where?"}},
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "AIMessage"],
                "kwargs": {"content": "", "tool_calls": [{"name": "find", "args": {"q": 1}, "id": "c1"}]},
            },
            {"type": "tool", "data": {"content": "none", "tool_call_id": "c1", "id": "its own"}},
        ],
        [message("user", "Where?"), message("assistant", CALL), message("tool", RESULT)],
    ),
    "langchain, plain": (
        [
            {"type": "system", "content": "Be kind."},
            ["human", "Where?"],
            {
                "type": "ai",
                "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {"q": 1}}],
                "tool_calls": [{"name": "find", "args": {"q": 1}, "id": "c1"}],
            },
            {"type": "tool", "content": "none", "tool_call_id": "c1", "name": "find"},
        ],
        [
            message("system", "Be kind."),
            message("user", "Where?"),
            message("assistant", CALL),
            message("tool", NAMED_RESULT),
        ],
    ),
    "vercel": (
        [
            {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {"q": 1}}],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c1",
                        "toolName": "find",
                        "output": {"type": "error-text", "value": "none"},
                    }
                ],
            },
        ],
        [
            message("user", "Where?"),
            message("assistant", CALL),
            message("tool", ResultPart(call_id="c1", tool_name="find", content="none", is_error=True)),
        ],
    ),
}


@pytest.mark.parametrize("shape", CONVERSATIONS)
def test_messages_are_read_in_each_shape(shape):
    written, expected = CONVERSATIONS[shape]

    assert messages_of(written) == tuple(expected)
    assert messages_of(json.dumps(written)) == tuple(expected)


def test_messages_of_several_shapes_may_stand_in_one_list():
    mixed = [written[0] for written, _ in CONVERSATIONS.values()]

    assert messages_of(mixed) == tuple(expected[0] for _, expected in CONVERSATIONS.values())


def test_messages_of_a_batch_are_those_of_the_first_list():
    assert messages_of([[{"type": "human", "content": "a"}], [{"type": "human", "content": "b"}]]) == (
        message("user", "a"),
    )


def test_parts_that_nobody_knows_are_kept_as_they_came():
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    search = {"type": "web_search_call", "id": "w"}
    written = [{"role": "user", "content": [image, 7, {"text": 5}]}, search]

    assert messages_of(written) == (
        message(
            "user",
            OtherPart(kind="image_url", value=image),
            OtherPart(kind="int", value=7),
            OtherPart(kind="unknown", value={"text": 5}),
        ),
        message("assistant", OtherPart(kind="web_search_call", value=search)),
    )


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "hello",
        ["hello"],
        {"role": "user", "content": "a"},
        [{"page_content": "a", "metadata": {}}],
        [{"role": "user", "name": "Bo"}],
        [{"name": "find", "args": {}, "id": "c1", "type": "tool_call"}],
        [{"role": "user", "content": "a"}, 7],
    ],
)
def test_messages_are_none_where_there_are_none(value):
    assert messages_of(value) is None


def test_request_of_anthropic_keeps_the_system_prompt_apart():
    request = request_of(
        {
            "model": "m",
            "system": [{"type": "text", "text": "Be kind."}],
            "messages": [{"role": "user", "content": "Where?"}],
            "tools": [{"name": "find", "input_schema": {"type": "object"}}],
            "max_tokens": 5,
            "temperature": None,
        }
    )

    assert request is not None
    assert request.instructions == "Be kind."
    assert request.messages == (message("user", "Where?"),)
    assert request.tools == (ToolDefinition(name="find", parameters={"type": "object"}),)
    assert (request.model, request.settings) == ("m", {"max_tokens": 5})


def test_request_of_google_reads_its_config():
    request = request_of(
        {
            "model": "m",
            "contents": "Where?",
            "config": {"systemInstruction": {"parts": [{"text": "Be kind."}]}, "topP": 0.5, "maxOutputTokens": 5},
        }
    )

    assert request is not None
    assert (request.instructions, request.messages) == ("Be kind.", (message("user", "Where?"),))
    assert request.settings == {"top_p": 0.5, "max_output_tokens": 5}


def test_request_of_a_list_takes_offered_tools_for_no_messages():
    offer = {"role": "tool", "content": {"type": "function", "function": {"name": "find"}}}
    answer = {"role": "tool", "tool_call_id": "c1", "content": {"function": {}}}

    request = request_of([{"role": "user", "content": "Where?"}, answer, offer])

    assert request is not None
    assert [each.role for each in request.messages] == ["user", "tool"]
    assert request.tools == (ToolDefinition(name="find"),)


@pytest.mark.parametrize("value", [None, {"question": "a"}, {"messages": []}, {"input": ["a", 7]}, [1], "text"])
def test_request_is_none_without_messages(value):
    assert request_of(value) is None


RESPONSES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "openai chat": (
        {
            "id": "r",
            "model": "m",
            "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Gone."}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
        },
        ("m", "r", "stop", 9, 2),
    ),
    "openai responses": (
        {
            "id": "r",
            "model": "m",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Gone."}]}],
            "usage": {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}},
        },
        ("m", "r", None, 9, 2),
    ),
    "openai responses, with the status": (
        {
            "id": "r",
            "model": "m",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Gone."}]}],
            "status": "completed",
            "incomplete_details": None,
            "usage": {"input_tokens": 9, "output_tokens": 2},
        },
        ("m", "r", "completed", 9, 2),
    ),
    "openai responses, cut short": (
        {
            "id": "r",
            "model": "m",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Gone."}]}],
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "usage": {"input_tokens": 9, "output_tokens": 2},
        },
        ("m", "r", "max_output_tokens", 9, 2),
    ),
    "anthropic": (
        {
            "id": "r",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "Gone."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}
            | {"output_tokens": 2},
        },
        ("m", "r", "end_turn", 9, 2),
    ),
    "google": (
        {
            "responseId": "r",
            "modelVersion": "m",
            "candidates": [{"content": {"role": "model", "parts": [{"text": "Gone."}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1, "thoughtsTokenCount": 1},
        },
        ("m", "r", "STOP", 9, 2),
    ),
    "bedrock": (
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "Gone."}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 5, "cacheReadInputTokens": 4, "outputTokens": 2},
        },
        (None, None, "end_turn", 9, 2),
    ),
    "langchain result": (
        {
            "generations": [
                [
                    {
                        "text": "Gone.",
                        "generation_info": {"finish_reason": "stop"},
                        "message": {
                            "lc": 1,
                            "id": ["langchain", "AIMessage"],
                            "kwargs": {"content": "Gone.", "id": "run-1", "usage_metadata": {"input_tokens": 9}},
                        },
                    }
                ]
            ],
            "llm_output": {"model_name": "m", "id": "r", "token_usage": {"completion_tokens": 2}},
        },
        ("m", "r", "stop", 9, 2),
    ),
    "langgraph state": (
        {
            "messages": [
                {"type": "human", "content": "Where?"},
                {
                    "type": "ai",
                    "id": "run-1",
                    "content": "Gone.",
                    "response_metadata": {"model_name": "m", "id": "r", "finish_reason": "stop"},
                    "usage_metadata": {"input_tokens": 9, "output_tokens": 2},
                },
            ]
        },
        ("m", "r", "stop", 9, 2),
    ),
    "chunks of openai chat": (
        [
            {"id": "r", "model": "m", "choices": [{"delta": {"role": "assistant", "content": "Go"}}]},
            json.dumps({"choices": [{"delta": {"content": "ne."}, "finish_reason": "stop"}]}),
            {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
        ],
        ("m", "r", "stop", 9, 2),
    ),
    "chunks of anthropic": (
        [
            {"type": "message_start", "message": {"id": "r", "model": "m", "usage": {"input_tokens": 9}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Gone."}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        ],
        ("m", "r", "end_turn", 9, 2),
    ),
    "chunks of google": (
        [
            {"candidates": [{"content": {"parts": [{"text": "Go"}]}}], "model_version": "m", "response_id": "r"},
            {
                "candidates": [{"content": {"parts": [{"text": "ne."}]}, "finish_reason": "STOP"}],
                "usage_metadata": {"prompt_token_count": 9, "candidates_token_count": 2},
            },
        ],
        ("m", "r", "STOP", 9, 2),
    ),
    "chunks of langchain": (
        [
            {"type": "AIMessageChunk", "content": "Go", "response_metadata": {"model_name": "m", "id": "r"}},
            {
                "type": "AIMessageChunk",
                "content": "ne.",
                "response_metadata": {"finish_reason": "stop"},
                "usage_metadata": {"input_tokens": 9, "output_tokens": 2},
            },
        ],
        ("m", "r", "stop", 9, 2),
    ),
}


@pytest.mark.parametrize("shape", RESPONSES)
def test_response_is_read_in_each_shape(shape):
    written, facts = RESPONSES[shape]

    found = response_of(written)

    assert found is not None
    assert found.answer == message("assistant", "Gone.")
    assert (found.model, found.response_id, found.finish_reason, found.input_tokens, found.output_tokens) == facts


def test_response_from_chunks_puts_calls_together_by_index():
    def piece(index: int, **function: str) -> dict[str, Any]:
        return {"choices": [{"delta": {"tool_calls": [{"index": index, "id": f"c{index}", "function": function}]}}]}

    found = response_of([piece(1, name="find", arguments='{"q"'), piece(2, name="sum"), piece(1, arguments=": 1}")])

    assert found is not None
    assert found.answer == message("assistant", CALL_AS_TEXT, CallPart(tool_name="sum", call_id="c2"))


def test_response_from_anthropic_chunks_puts_arguments_together():
    start = {"type": "tool_use", "id": "c1", "name": "find", "input": {}}
    events = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"q": '}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
    ]

    found = response_of(events)

    assert found is not None
    assert found.answer == message("assistant", CALL_AS_TEXT)


def test_response_does_not_count_a_cache_twice():
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "cache_read_input_tokens": 4}

    found = response_of({"choices": [{"message": {"content": "a"}}], "usage": usage})

    assert found is not None
    assert found.input_tokens == 9


@pytest.mark.parametrize(
    "value", [None, {}, {"choices": []}, {"output": "text"}, {"role": "user", "content": "a"}, [{"page_content": "a"}]]
)
def test_response_is_none_without_an_answer(value):
    assert response_of(value) is None


SCHEMA = {"type": "object", "properties": {"q": {"type": "integer"}}}
FIND = ToolDefinition(name="find", description="Finds.", parameters=SCHEMA)


@pytest.mark.parametrize(
    "written",
    [
        {"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": SCHEMA}},
        {"type": "function", "name": "find", "description": "Finds.", "parameters": SCHEMA},
        {"name": "find", "description": "Finds.", "input_schema": SCHEMA},
        {"toolSpec": {"name": "find", "description": "Finds.", "inputSchema": {"json": SCHEMA}}},
        {"functionDeclarations": [{"name": "find", "description": "Finds.", "parameters": SCHEMA}]},
        {"type": "function", "name": "find", "description": "Finds.", "inputSchema": SCHEMA},
        json.dumps({"name": "find", "description": "Finds.", "parameters": json.dumps(SCHEMA)}),
    ],
)
def test_tools_are_read_in_each_shape(written):
    assert tools_of([written]) == (FIND,)
    assert tools_of({"tools": [written]}) == (FIND,)


def test_tools_of_the_provider_go_by_their_type():
    assert tools_of([{"type": "web_search_preview"}]) == (ToolDefinition(name="web_search_preview"),)


@pytest.mark.parametrize("value", [None, [], "find", [7], [{"type": "function"}], {"tools": "find"}])
def test_tools_are_none_where_there_are_none(value):
    assert tools_of(value) is None


NAMES_OF_FIELDS = """
role content parts type text messages input contents tool_calls function name arguments args id call_id tool_use
tool_result toolUse toolResult functionCall functionResponse output result response kwargs data choices message delta
candidates generations usage usage_metadata prompt_tokens input_tokens tools config system additional_kwargs index
summary thinking content_block item functionDeclarations inputSchema tool_call_chunks response_metadata
"""
VALUES_OF_FIELDS = """
user assistant tool ai human AIMessage AIMessageChunk HumanMessage text tool-call tool_result function reasoning message
function_call function_call_output message_start message_delta content_block_start content_block_delta thinking json
response.completed response.output_text.delta error error-text {"role": [ NaN 1e999 \ud800
"""
KEYS = st.sampled_from(NAMES_OF_FIELDS.split())
WORDS = st.sampled_from(VALUES_OF_FIELDS.split())
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6))


@given(VALUES)
def test_nothing_raises_on_any_value(value):
    for read in (messages_of, request_of, response_of, tools_of, failure_of):
        found = read(value)

        assert found is None or found


@given(st.sampled_from(sorted(CONVERSATIONS)), st.integers(0, 3), VALUES)
def test_nothing_raises_on_a_conversation_with_a_strange_message(shape, position, strange):
    written = list(CONVERSATIONS[shape][0])
    written[position % len(written)] = strange

    assert messages_of(written) is None or len(messages_of(written) or ()) >= 1


@pytest.mark.parametrize("opening", ["[", '{"messages":', '[{"content":'])
def test_nothing_raises_on_deep_nesting(opening):
    deep = opening * 100_000

    assert [read(deep) for read in (messages_of, request_of, response_of, tools_of)] == [None] * 4


# --- failures ------------------------------------------------------------------------------------

BOOM = {"message": "boom"}


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        ({"choices": [], "error": BOOM}, BOOM),
        ({"error": "boom"}, BOOM),
        ({"choices": [{"message": {"content": "Hi."}, "error": BOOM}]}, BOOM),
        ({"choices": [{"message": {"content": "Hi."}}], "error": None, "status": "failed"}, None),
        ({"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, None),
        ({"output": [], "status": "cancelled"}, {"message": "The response has the status cancelled."}),
        ([{"choices": []}, {"error": BOOM}], BOOM),
        ([{"type": "error", "message": "boom"}], {"type": "error", "message": "boom"}),
        ([{"type": "response.created", "response": {"output": [], "status": "in_progress"}}], None),
        ([{"type": "response.failed", "response": {"output": [], "status": "failed", "error": BOOM}}], BOOM),
        (["[DONE]", 7, None], None),
    ],
)
def test_what_an_answer_says_of_its_failure(said, failure):
    assert failure_of(said) == failure


# --- streams that tell a part of the answer twice ------------------------------------------------

FOUND = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find", "arguments": '{"q": 1}'}
WORDS_SAID = {"type": "message", "id": "m_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
OF_RESPONSES = [
    {"type": "response.created", "response": {"output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**FOUND, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": '{"q": 1}'},
    {"type": "response.output_item.done", "output_index": 0, "item": FOUND},
    {"type": "response.output_item.added", "output_index": 1, "item": {**WORDS_SAID, "content": []}},
    {
        "type": "response.content_part.done",
        "output_index": 1,
        "content_index": 0,
        "item_id": "m_1",
        "part": WORDS_SAID["content"][0],
    },
    {"type": "response.output_item.done", "output_index": 1, "item": WORDS_SAID},
    {"type": "response.completed", "response": {"output": [FOUND, WORDS_SAID]}},
]
OF_MESSAGES = [
    {"type": "message_start", "message": {"role": "assistant", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c1", "name": "find"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
]
PIECE: dict[str, Any] = {"index": 0, "id": "c1", "function": {"name": "find", "arguments": "{"}}


def of_chat(**more: Any) -> list[Any]:
    later = {"index": 0, "function": {"arguments": "}"}, **more}
    return [{"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in (PIECE, later)]


def is_told_otherwise(events: list[Any]) -> bool:
    found = response_of([json.dumps(event) for event in events])
    assert found is not None
    return found.is_told_otherwise


@pytest.mark.parametrize(
    "events",
    [
        OF_RESPONSES,
        OF_RESPONSES[-1:],
        OF_MESSAGES,
        of_chat(),
        of_chat(id="c1", function={"name": "find", "arguments": "}"}),
        of_chat(id="", function={"name": "", "arguments": "}"}),
    ],
)
def test_a_stream_that_tells_each_part_alike_is_told_once(events):
    assert not is_told_otherwise(events)


@pytest.mark.parametrize(
    ("position", "place", "value"),
    [
        *((1, ("item", name), "other") for name in ("name", "call_id", "id", "type")),
        *((3, ("item", name), "other") for name in ("name", "call_id", "id", "arguments")),
        (1, ("output_index",), 1),
        (2, ("item_id",), "other"),
        (2, ("delta",), "{}"),
        (5, ("part", "text"), "Ho."),
        (6, ("item", "content"), []),
        (0, ("response", "output"), [FOUND]),
    ],
)
def test_a_response_of_which_an_event_tells_another_item_is_told_otherwise(position, place, value):
    events = json.loads(json.dumps(OF_RESPONSES))
    *outer, name = place
    (events[position][outer[0]] if outer else events[position])[name] = value

    assert is_told_otherwise(events)


@pytest.mark.parametrize("again", [0, 1, 3])
def test_a_message_or_a_block_of_one_that_begins_twice_is_told_otherwise(again):
    assert is_told_otherwise([*OF_MESSAGES[: again + 1], *OF_MESSAGES[again:]])


def test_a_piece_of_a_block_that_did_not_begin_is_told_otherwise():
    assert is_told_otherwise([event for event in OF_MESSAGES if event != OF_MESSAGES[1]])


@pytest.mark.parametrize("more", [{"id": "c2"}, {"function": {"name": "other", "arguments": "}"}}])
def test_a_call_of_a_stream_with_two_ids_or_two_names_is_told_otherwise(more):
    assert is_told_otherwise(of_chat(**more))


@pytest.mark.parametrize(
    ("block", "is_another"),
    [
        ({"name": "find", "input": {"id": "7"}}, False),
        ({"name": "find", "input": {}, "partial_json": '{"id": "7"}'}, False),
        ({"name": "find", "input": {"id": "8"}}, True),
        ({"name": "cancel", "input": {"id": "7"}}, True),
    ],
)
def test_a_block_tells_the_call_beside_it_alike_or_otherwise(block, is_another):
    call = {"name": "find", "args": {"id": "7"}, "id": "c1", "type": "tool_call"}
    said = {"type": "ai", "content": [{"type": "tool_use", "id": "c1", **block}], "tool_calls": [call]}

    (message,) = messages_of([said]) or ()

    assert message.are_calls_told_otherwise is is_another
    assert [part.tool_name for part in message.parts] == ["find"]
