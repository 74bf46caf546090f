"""Anthropic's messages: what is sent, what comes back, what is refused."""

from typing import Any

import pytest

from sessions_app.agents.live_model.client import LiveModelClient
from tests.fake_provider import KEY, PROMPT, ask, fake_provider, make_endpoint, message, of_json, refusal

SETTINGS = {"temperature": 0.2, "max_tokens": 50, "seed": 7, "stop_sequences": ["END"], "parallel_tool_calls": False}
TOOL = {"name": "look", "description": "Looks.", "parameters_json_schema": {"type": "object", "properties": {}}}
ASKED = [
    {
        "kind": "request",
        "instructions": "Be brief.",
        "parts": [
            {"part_kind": "system-prompt", "content": "You look things up."},
            {"part_kind": "user-prompt", "content": "Two things."},
        ],
    },
    {
        "kind": "response",
        "parts": [
            {"part_kind": "text", "content": "Looking."},
            *(
                {"part_kind": "tool-call", "tool_name": "look", "args": f'{{"n": {n}}}', "tool_call_id": f"call_{n}"}
                for n in (1, 2)
            ),
        ],
    },
    {
        "kind": "request",
        "instructions": "Be brief.",
        "parts": [
            {"part_kind": "tool-return", "tool_name": "look", "tool_call_id": f"call_{n}", "content": f"thing {n}"}
            for n in (1, 2)
        ],
    },
]


def sent_for(messages, parameters=None, settings=None):
    """The body of the request, the answer, and the headers."""
    with fake_provider(message({"type": "text", "text": "Yes."})) as provider:
        client = LiveModelClient(make_endpoint(provider.url, protocol="messages"))
        answer = client.answer(messages, parameters, model="claude-x", settings=settings)
        received = provider.server.received[0]
        return provider.bodies[0], answer, (received.path, received.headers)


def test_a_conversation_is_written_as_messages():
    body, _, _ = sent_for(ASKED, {"function_tools": [TOOL]}, SETTINGS)

    assert body == {
        "model": "claude-x",
        "max_tokens": 50,
        "temperature": 0.2,
        "stop_sequences": ["END"],
        "system": "You look things up.\n\nBe brief.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Two things."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "call_1", "name": "look", "input": {"n": 1}},
                    {"type": "tool_use", "id": "call_2", "name": "look", "input": {"n": 2}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "thing 1"},
                    {"type": "tool_result", "tool_use_id": "call_2", "content": "thing 2"},
                ],
            },
        ],
        "tools": [{"name": "look", "description": "Looks.", "input_schema": TOOL["parameters_json_schema"]}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    }


def test_an_output_with_a_schema_is_asked_for_as_one():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    body, _, _ = sent_for(PROMPT, {"output_mode": "native", "output_object": {"json_schema": schema}})

    assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


def test_the_key_has_the_header_of_the_provider():
    _, _, (path, headers) = sent_for(PROMPT)

    sent = {name.lower(): value for name, value in headers.items()}
    assert (path, sent["x-api-key"], sent["anthropic-version"]) == ("/v1/messages", KEY, "2023-06-01")
    assert "authorization" not in sent


def test_settings_without_a_word_for_them_are_named():
    _, answer, _ = sent_for(PROMPT, None, SETTINGS | {"timeout": 3})

    assert answer["metadata"] == {"settings_not_sent": ["seed", "timeout"]}


@pytest.mark.parametrize(
    ("stop_reason", "finish"), [("end_turn", "stop"), ("max_tokens", "length"), ("refusal", "content_filter")]
)
def test_an_answer_is_kept_as_any_other(stop_reason, finish):
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "…"},
        {"type": "text", "text": "No."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"n": 1}},
    ]
    with fake_provider(message(*blocks, stop_reason=stop_reason)) as provider:
        answer = ask(provider, protocol="messages")

    assert [part["part_kind"] for part in answer["parts"]] == ["text", "tool-call"]
    assert (answer["parts"][1]["args"], answer["parts"][1]["tool_call_id"]) == ({"n": 1}, "toolu_1")
    assert (answer["model_name"], answer["finish_reason"]) == ("claude-fake-1", finish)
    assert answer["usage"] == {"input_tokens": 12, "output_tokens": 3}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (of_json({"content": [7]}), "Its answer is none of a chat completion."),
        (of_json({"content": [{"type": "tool_use", "id": "t"}]}), "Its answer is none of a chat completion."),
        (
            of_json({"type": "error", "error": {"type": "authentication_error", "message": KEY}}, status=401),
            "It refused the key (401: authentication error).",
        ),
        (of_json({"type": "error", "error": {"type": KEY}}, status=400), "It refused the request (400)."),
    ],
)
def test_what_is_no_answer_is_refused_in_words_of_ours(answer, words):
    with fake_provider(answer) as provider:
        assert refusal(provider, protocol="messages") == words
