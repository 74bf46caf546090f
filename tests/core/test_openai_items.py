"""Runs of the OpenAI Agents SDK, from their items."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import ToolCall
from tests.recorder.replaying import assert_promise_kept, replayed

RECORD = Path("tests/records/openai_agents_items.json")


def parse(document: Any) -> Any:
    return parse_document(json.dumps(document).encode())


def test_items_become_messages_and_steps():
    run = parse_document(RECORD.read_bytes())

    assert [(step.kind, step.name) for step in run.steps] == [
        ("model", "model"),
        ("tool", "lookup_order"),
        ("model", "model"),
    ]
    call = run.steps[1].call
    assert isinstance(call, ToolCall)
    assert call.arguments.content == b'{"order_id": "LIVE-1"}'
    assert call.result.parsed == {"id": "LIVE-1", "status": "shipped"}
    assert (run.input.value, run.status, judge(run).verdict) == ("where is my order?", "ok", "replayable")


def test_every_item_is_kept_with_its_type_and_structure():
    sent = json.loads(RECORD.read_bytes())

    run = parse_document(RECORD.read_bytes())

    assert run.extra["items"] == sent["items"]
    assert parse_document(encode_native(run)) == run


def test_items_saved_as_text_are_kept_and_cannot_be_replayed():
    """What `str(raw_item)` gives: the class name and its fields, no structure."""
    items = [{"type": "ToolCallItem", "raw": "ResponseFunctionToolCall(arguments='{}')"}]

    run = parse({"input": "Weather?", "final_output": "Sunny", "items": items})

    assert [(step.kind, step.name, step.call.result.value) for step in run.steps] == [
        ("other", "ToolCallItem", "ResponseFunctionToolCall(arguments='{}')")
    ]
    assert (run.output.value, judge(run).verdict) == ("Sunny", "cold")


def said_and_ended(said: str, final_output: Any) -> bytes:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
    items = [{"type": "MessageOutputItem", "raw": message}]
    return encode_native(parse({"input": "Who?", "final_output": final_output, "items": items}))


def test_a_default_that_the_output_class_filled_in_is_no_difference():
    judged = assert_promise_kept(said_and_ended('{"name": "a"}', {"name": "a", "height": 1.5}))

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("output_made_by_code", 2)]
    assert judge(parse_document(said_and_ended('{"name": "a"}', {"name": "a"}))).verdict == "replayable"


def test_other_words_than_the_last_answer_are_a_difference():
    said = said_and_ended("In words.", "In other words.")

    assert [reason.code for reason in judge(parse_document(said)).reasons] == ["output_differs"]
    assert replayed(said)[0].verdict == "diverged"


def test_parallel_calls_are_one_answer_and_their_results_one_request():
    calls = [
        {"type": "function_call", "name": "weather", "arguments": f'{{"city": "{city}"}}', "call_id": city}
        for city in ("Paris", "London")
    ]
    outputs = [{"type": "function_call_output", "call_id": city, "output": "72°F"} for city in ("Paris", "London")]
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Both 72°F."}]}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}

    run = parse(
        {
            "input": "Weather in Paris and London",
            "final_output": "Both 72°F.",
            "items": [thought, *calls, *outputs, said],
        }
    )

    assert [step.kind for step in run.steps] == ["model", "tool", "tool", "model"]
    assert run.final.length == 4


def test_an_item_without_type_names_the_field():
    with pytest.raises(RecordError) as caught:
        parse({"input": "x", "items": [{"raw": {}}]})

    assert caught.value.field == "items[0].type"


# --- what no message holds ----------------------------------------------------------------------


def of_kind(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "ToolCallItem", "raw": {"type": kind, "id": "x1", **fields}}


def said_by(role: str, *pieces: Any) -> dict[str, Any]:
    return {"type": "MessageOutputItem", "raw": {"type": "message", "role": role, "content": list(pieces)}}


TEXT = {"type": "output_text", "text": "I looked."}
UNREAD = {
    "MCP": (of_kind("mcp_call", name="delete_all", output="deleted"), "is of the kind mcp_call"),
    "shell": (of_kind("local_shell_call", action={"command": ["rm"]}), "is of the kind local_shell_call"),
    "custom": (of_kind("custom_tool_call", input="DROP TABLE"), "is of the kind custom_tool_call"),
    "output": (of_kind("custom_tool_call_output", output="dropped"), "is of the kind custom_tool_call_output"),
    "unknown": (of_kind("zzz"), "is of the kind zzz"),
    "nothing": ({"type": "ToolCallItem", "raw": None}, "holds nothing"),
    "no raw": ({"type": "ToolCallItem"}, "is of the kind ToolCallItem"),
    "no content": ({"type": "MessageOutputItem", "raw": {"role": "assistant"}}, "is a message without content"),
    "no text": (said_by("assistant", {"type": "output_text"}), "holds a text that was not saved"),
    "video": (said_by("assistant", TEXT, {"type": "output_video"}), "holds a part of the kind output_video"),
}


def items_with(item: dict[str, Any] | None, at: int = 1) -> bytes:
    document = json.loads(RECORD.read_bytes())
    document["items"][at:at] = [] if item is None else [item]
    return encode_native(parse(document))


def reasons(record: bytes) -> list[tuple[str, int | None]]:
    return [(reason.code, reason.step) for reason in assert_promise_kept(record).reasons]


@pytest.mark.parametrize("what", UNREAD)
def test_an_item_that_no_message_holds_is_named_at_the_request_behind_it(what: str):
    item, words = UNREAD[what]
    record = items_with(item)

    assert reasons(items_with(None)) == []
    assert ("items_not_read", 3) in reasons(record)
    assert f"items[1] {words}, which a replay cannot repeat." in judge(parse_document(record)).words


@pytest.mark.parametrize(
    ("kind", "at", "step"),
    [
        ("web_search_call", 0, 3),
        ("web_search_call", 2, 4),
        ("local_shell_call", 0, 1),
        ("local_shell_call", 2, 3),
        ("computer_call_output", 2, 3),
        ("web_search_call", 3, 4),
    ],
)
def test_a_request_that_would_have_held_it_is_not_proven(kind: str, at: int, step: int):
    assert ("items_not_read", step) in reasons(items_with(of_kind(kind), at))


@pytest.mark.parametrize("role", ["user", "system"])
def test_a_message_beside_what_tools_gave_is_judged(role: str):
    answers = [item["raw"].get("type") for item in json.loads(RECORD.read_bytes())["items"]]
    at = answers.index("function_call_output") + 1

    assert ("message_from_code", 3) in reasons(items_with(said_by(role, {**TEXT, "type": "input_text"}), at))


@pytest.mark.parametrize("change", [lambda raw: raw.pop("arguments"), lambda raw: raw.update(arguments=None)])
def test_a_call_without_arguments_is_no_call_with_none(change):
    document = json.loads(RECORD.read_bytes())
    change(next(item["raw"] for item in document["items"] if item["raw"].get("type") == "function_call"))

    assert reasons(encode_native(parse(document))) == [("items_not_read", 2)]


CALLS = [
    {"type": "function_call", "call_id": f"c{number}", "name": "find", "arguments": f'{{"q": {number}}}'}
    for number in range(2)
]
GIVEN = [{"type": "function_call_output", "call_id": call["call_id"], "output": "found"} for call in CALLS]
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


def saved(*items: dict[str, Any], asked: Any = "Go.") -> bytes:
    return encode_native(parse({"input": asked, "final_output": "Done.", "items": list(items)}))


@pytest.mark.parametrize("arguments", ['{"q": 1}}', '{"q": ', "[1]", "text"])
def test_the_sdk_hands_on_arguments_that_are_no_object(arguments: str):
    record = saved({**CALLS[0], "arguments": arguments}, CALLS[1], *GIVEN, SAID)

    assert assert_promise_kept(record).verdict == "replayable"


@pytest.mark.parametrize(("lost", "step"), [(None, None), (0, 1), (1, 2), (2, 1), (3, 2)])
def test_a_call_or_an_answer_without_its_id_ends_the_replay_at_that_call(lost: int | None, step: int | None):
    items = [dict(each) for each in (*CALLS, *GIVEN)]
    for item in [] if lost is None else items[lost : lost + 1]:
        del item["call_id"]

    assert assert_promise_kept(saved(*items, SAID)).step == step


def test_a_call_that_stands_twice_in_one_answer_is_made_by_no_loop():
    record = saved(CALLS[0], CALLS[0], GIVEN[0], SAID)

    assert assert_promise_kept(record).step == 1
    assert ("call_ids_doubled", 2) in reasons(record)


@pytest.mark.parametrize(
    "row",
    [
        {"role": "user", "content": [{"type": "input_text", "text": "Go."}, {"type": "input_image", "image_url": "x"}]},
        {"type": "item_reference", "id": "msg_1"},
    ],
)
def test_what_no_message_holds_of_the_input_is_named(row: dict[str, Any]):
    record = saved(*CALLS, *GIVEN, SAID, asked=[row, {"role": "user", "content": "Go."}])

    assert assert_promise_kept(record).verdict == "cold"
    assert ("items_not_read", 1) in reasons(record)
