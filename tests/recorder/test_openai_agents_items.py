"""Items of the Responses API as messages, and which of them are new."""

from __future__ import annotations

from typing import Any

import pytest

from replay_recorder.hooks.openai_agents_items import (
    Conversation,
    KnownCalls,
    answer_parts,
    messages_of,
    prompt_of,
    user_content,
)

Json = dict[str, Any]
SHIPPED = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Shipped."}]}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def call(call_id: str, arguments: str = "{}") -> Json:
    return {"type": "function_call", "name": "lookup", "arguments": arguments, "call_id": call_id}


def answered(call_id: str, output: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


# --- messages ----------------------------------------------------------------------------------


def test_neighbours_of_one_side_are_one_message():
    rows = [user("Where?"), call("c1"), call("c2"), answered("c1", "here"), answered("c2", "there"), SHIPPED]

    messages = messages_of(rows, KnownCalls())

    assert [(message["kind"], [part["part_kind"] for part in message["parts"]]) for message in messages] == [
        ("request", ["user-prompt"]),
        ("response", ["tool-call", "tool-call"]),
        ("request", ["tool-return", "tool-return"]),
        ("response", ["text"]),
    ]
    assert [part["tool_name"] for part in messages[2]["parts"]] == ["lookup", "lookup"]


@pytest.mark.parametrize("arguments", ['{"b": 1,  "a": 1.0}', '{"cut": ', ""])
def test_arguments_stay_as_they_were_spelled(arguments: str):
    (message,) = messages_of([call("c1", arguments)], KnownCalls())

    assert message["parts"][0]["args"] == arguments


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ({"role": "system", "content": "Be kind."}, {"part_kind": "system-prompt", "content": "Be kind."}),
        ({"role": "assistant", "content": "Hi."}, {"part_kind": "text", "content": "Hi."}),
        (
            {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"part_kind": "text", "content": "No.", "id": "m1", "provider_details": {"refusal": True}},
        ),
        (
            {"type": "message", "id": "__fake_id__", "role": "assistant", "content": [{"text": "Hi."}]},
            {"part_kind": "text", "content": "Hi."},
        ),
        (
            {"type": "reasoning", "id": "r1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"part_kind": "thinking", "content": "Hm.", "id": "r1"},
        ),
        (
            {"type": "custom_tool_call", "name": "sql", "input": "select 1", "call_id": "c1"},
            {"part_kind": "tool-call", "tool_name": "sql", "args": {"input": "select 1"}, "tool_call_id": "c1"},
        ),
        (
            {"type": "shell_call", "id": "s1", "call_id": "c1", "action": {"commands": ["ls"]}},
            {
                "part_kind": "tool-call",
                "tool_name": "shell",
                "args": {"action": {"commands": ["ls"]}},
                "tool_call_id": "c1",
            },
        ),
        (
            {"type": "code_interpreter_call", "id": "ci1", "code": "1"},
            {
                "part_kind": "builtin-tool-call",
                "tool_name": "code_interpreter",
                "args": {"code": "1"},
                "tool_call_id": "ci1",
            },
        ),
        (
            {"type": "mcp_approval_response", "approval_request_id": "a1", "approve": True},
            {
                "part_kind": "tool-return",
                "tool_name": "mcp_approval_response",
                "content": {"approval_request_id": "a1", "approve": True},
                "tool_call_id": "a1",
            },
        ),
    ],
)
def test_an_item_becomes_a_part(row: Json, part: Json):
    (message,) = messages_of([row], KnownCalls())

    assert message["parts"] == [part]


def test_an_item_that_lost_its_output_tells_nothing():
    (message,) = messages_of([{"type": "function_call_output", "call_id": "c1", "status": "completed"}], KnownCalls())

    assert message["parts"] == [{"part_kind": "tool-return", "tool_name": "function_call", "tool_call_id": "c1"}]


def test_a_call_that_comes_with_its_answer_was_made_by_the_provider():
    made = {"type": "shell_call", "id": "s1", "call_id": "c1", "action": {"commands": ["ls"]}}
    output = {"type": "shell_call_output", "call_id": "c1", "output": [{"stdout": "a.txt"}]}

    parts = answer_parts([made, output, call("c2")], KnownCalls())

    assert [(part["part_kind"], part["tool_call_id"]) for part in parts] == [
        ("builtin-tool-call", "c1"),
        ("builtin-tool-return", "c1"),
        ("tool-call", "c2"),
    ]
    assert parts[1]["content"] == [{"stdout": "a.txt"}]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Where?", "Where?"),
        ([{"type": "input_text", "text": "Where?"}], "Where?"),
        (
            [{"type": "input_file", "file_url": "https://a.example/b.pdf"}],
            [{"kind": "document-url", "url": "https://a.example/b.pdf"}],
        ),
        (
            [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}],
            [{"kind": "binary", "media_type": "audio/wav", "data": "AA=="}],
        ),
        ([{"type": "input_dance", "steps": 3}], '{"type":"input_dance","steps":3}'),
    ],
)
def test_content_of_a_prompt(content: Any, expected: Any):
    assert user_content(content) == expected


@pytest.mark.parametrize(
    ("items", "prompt"),
    [
        ("Where?", "Where?"),
        ([user("Where?")], "Where?"),
        ([user("Hi."), SHIPPED, user("Where?")], "Where?"),
        ([{"role": "developer", "content": "Be kind."}, user("Where?")], "Where?"),
        ([user("Hi."), user("Where?")], None),
        ([user("Where?"), SHIPPED], None),
        ([user("Where?"), call("c1"), answered("c1", "here")], None),
        ([], None),
    ],
)
def test_the_prompt_is_the_one_message_that_came_last(items: Any, prompt: Any):
    assert prompt_of(items) == prompt


# --- what is new -------------------------------------------------------------------------------


def asked(conversation: Conversation, rows: list[Json]) -> tuple[int | None, int]:
    """The step that a request goes on from, and how many messages it adds."""
    found = conversation.ask(rows, None)
    return found.after, len(found.messages)


def begun(*rows: Json) -> Conversation:
    """One request with these items, which step 1 has answered with a call."""
    conversation = Conversation(is_kept_by_provider=False)
    conversation.ask(list(rows), None)
    conversation.answered(1, [call("c1")])
    return conversation


def test_a_request_adds_what_came_after_the_answer():
    conversation = begun(user("Where?"))

    assert asked(conversation, [user("Where?"), call("c1"), answered("c1", "here")]) == (1, 1)


def test_ids_that_are_not_sent_back_are_no_rewrite():
    conversation = Conversation(is_kept_by_provider=False)
    conversation.ask([user("Where?")], None)
    conversation.answered(1, [{**SHIPPED, "id": "msg_1", "status": "completed"}])

    assert asked(conversation, [user("Where?"), SHIPPED, user("And?")]) == (1, 1)


@pytest.mark.parametrize(
    "rows",
    [
        [user("Where??"), call("c1"), answered("c1", "here")],
        [user("Where?"), call("c2"), answered("c2", "here")],
        [user("Where?"), call("c1", '{"a": 1}'), answered("c1", "here")],
        [user("Where?"), user("And?")],
        [user("Where?")],
    ],
)
def test_a_rewritten_history_begins_anew(rows: list[Json]):
    after, _ = asked(begun(user("Where?")), rows)

    assert after is None


def test_an_item_that_the_team_changes_in_place_is_a_rewrite():
    row = user("Where?")
    conversation = begun(row)
    row["content"] = "Elsewhere?"

    assert asked(conversation, [row, call("c1"), answered("c1", "here")]) == (None, 3)


def test_a_request_after_one_without_an_answer_begins_anew():
    conversation = Conversation(is_kept_by_provider=False)
    conversation.ask([user("Where?")], None)

    assert asked(conversation, [user("Where?"), user("And?")]) == (None, 1)


def test_earlier_turns_stand_before_the_first_request():
    conversation = Conversation(is_kept_by_provider=False)

    found = conversation.ask([user("Hi."), SHIPPED, user("Where?")], "Be kind.")

    assert found.prior is not None
    assert [message["kind"] for message in found.prior] == ["request", "response"]
    assert found.history == {
        "after": 0,
        "messages": [
            {
                "kind": "request",
                "parts": [{"part_kind": "user-prompt", "content": "Where?"}],
                "instructions": "Be kind.",
            }
        ],
    }


def test_only_the_newest_message_carries_the_instructions():
    conversation = begun(user("Where?"))

    found = conversation.ask([user("Else?"), SHIPPED, user("And?")], "Be kind.")

    assert [message.get("instructions") for message in found.messages] == [None, None, "Be kind."]
