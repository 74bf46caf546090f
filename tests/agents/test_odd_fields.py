"""Fields of messages that were not captured, and such that the replaying library cannot read."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.playing import last_record
from tests.recorder.replaying import assert_promise_kept, replayed
from tests.recorder.scenarios import Scenario, one_tool

Record = dict[str, Any]


def small_record() -> Record:
    """As people write it by hand."""
    asked = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Q?"}]}
    call = {"part_kind": "tool-call", "tool_name": "t", "args": {"c": "L"}, "tool_call_id": "1"}
    given = {"part_kind": "tool-return", "tool_name": "t", "content": "sunny", "tool_call_id": "1"}
    told = {"kind": "request", "parts": [given]}
    said = {"kind": "response", "parts": [{"part_kind": "text", "content": "A."}]}
    steps = [
        {"kind": "model", "request": {"messages": [asked]}, "response": {"kind": "response", "parts": [call]}},
        {"kind": "tool", "tool_name": "t", "call_id": "1", "arguments": {"c": "L"}, "result": "sunny"},
        {"kind": "model", "request": {"after": 1, "messages": [told]}, "response": said},
    ]
    return {"format": "agent-replay.run", "version": 1, "run_id": "w", "input": "Q?", "output": "A.", "steps": steps}


def holders(record: Record) -> dict[str, Record]:
    request, told = (record["steps"][index]["request"]["messages"][0] for index in (0, 2))
    answer = record["steps"][2]["response"]
    return {"request": request, "answer": answer, "tool return": told["parts"][0], "text": answer["parts"][0]}


def reproduces(record: Record) -> bool:
    result, _ = replayed(json.dumps(record).encode())
    return result.verdict == "reproduced" and not judge(parse_native(json.dumps(record).encode())).reasons


@pytest.mark.parametrize(
    ("holder", "field"),
    [
        ("request", "state"),
        ("request", "run_id"),
        ("answer", "state"),
        ("answer", "usage"),
        ("answer", "timestamp"),
        ("answer", "finish_reason"),
        ("tool return", "outcome"),
        ("tool return", "timestamp"),
        ("text", "id"),
    ],
)
def test_null_was_not_captured(holder, field):
    record = small_record()
    holders(record)[holder][field] = None

    assert reproduces(record)


def test_null_tokens_were_not_captured():
    record = small_record()
    holders(record)["answer"]["usage"] = {"input_tokens": None, "output_tokens": 3}

    assert reproduces(record)


@pytest.mark.parametrize("index", [0, 2])
@pytest.mark.parametrize("field", ["run_id", "conversation_id"])
def test_the_run_of_one_answer_was_not_captured(index, field):
    record = json.loads(last_record(Scenario(one_tool), "run"))
    assert record["steps"][index]["response"][field] is not None

    record["steps"][index]["response"][field] = None

    assert reproduces(record)


@pytest.mark.parametrize(
    ("holder", "field", "value", "step"),
    [
        ("answer", "finish_reason", "end_turn", 3),
        ("answer", "metadata", "x", 3),
        ("answer", "provider_details", "x", 3),
        ("answer", "timestamp", "yesterday", 3),
        ("answer", "usage", {"input_tokens": "many"}, 3),
        ("answer", "parts", None, 3),
        ("tool return", "outcome", "well", 3),
        ("text", "content", 7, 3),
        ("text", "id", 7, 3),
        ("request", "run_id", 7, 1),
    ],
)
def test_what_cannot_be_read_is_judged_at_its_step(holder, field, value, step):
    record = small_record()
    holders(record)[holder][field] = value

    judged = assert_promise_kept(json.dumps(record).encode())

    reasons = [(reason.code, reason.step) for reason in judged.reasons]
    assert ("unknown_message_part", step) in reasons
    assert field in judged.words


@pytest.mark.parametrize("content", [{"status": "shipped"}, 7, ["Where?", 7]])
def test_a_prompt_that_is_no_text_is_judged_at_its_step(content):
    record = small_record()
    holders(record)["tool return"].update(part_kind="user-prompt", content=content)

    judged = assert_promise_kept(json.dumps(record).encode())

    assert ("unknown_message_part", 3) in [(reason.code, reason.step) for reason in judged.reasons]


@pytest.mark.parametrize("time", ["2026-02-17", "2026-02-17T14:23:01.123456789Z", "2026-02-17 14:23", 1700000000])
def test_times_of_any_kind_are_read(time):
    record = small_record()
    holders(record)["answer"]["timestamp"] = time

    assert reproduces(record)


@pytest.mark.parametrize("has_request", [True, False])
@pytest.mark.parametrize("value", [7, True, {"a": 1}])
def test_an_input_that_is_no_prompt_is_judged(value, has_request):
    record = small_record()
    record["input"] = value
    if not has_request:
        del record["steps"][0]["request"]

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["input_contradicts"]


@pytest.mark.parametrize("value", ["Q", "Hey. Q?", ["Q?"], "q?"])
def test_an_input_that_is_not_the_prompt_is_judged_and_the_prompt_is_replayed(value):
    record = small_record()
    record["input"] = value

    judged = assert_promise_kept(json.dumps(record).encode())

    assert (judged.step, [reason.code for reason in judged.reasons]) == (3, ["input_contradicts"])


def test_an_input_of_a_file_without_its_address_is_judged():
    record = small_record()
    record["input"] = ["Look.", {"kind": "image-url"}]

    judged = assert_promise_kept(json.dumps(record).encode())

    assert ("input_contradicts", 1) in [(reason.code, reason.step) for reason in judged.reasons]


def test_the_content_of_a_tool_that_cannot_be_read_is_judged_at_its_step():
    record = small_record()
    record["steps"][1]["content"] = [{"kind": "image-url"}]

    judged = assert_promise_kept(json.dumps(record).encode())

    assert ("unknown_message_part", 2) in [(reason.code, reason.step) for reason in judged.reasons]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("output_object", {"name": "Out"}, "parameters.output_object.json_schema of step 3"),
        ("output_tools", [{"name": "out", "kind": "other"}], "parameters.output_tools.0.kind of step 3"),
        ("instruction_parts", [{"part_kind": "instruction"}], "parameters.instruction_parts.0.content of step 3"),
        ("function_tools", [{"name": "t", "timeout": "long"}], "parameters.function_tools.0.timeout of step 3"),
    ],
)
def test_parameters_that_cannot_be_read_are_judged_at_their_step(name, value, said):
    record = small_record()
    plain = {"output_mode": "text", "function_tools": [{"name": "t", "kind": "function"}]}
    record["parameters"] = [plain, {**plain, name: value}]
    record["steps"][0]["parameters"], record["steps"][2]["parameters"] = 0, 1

    judged = assert_promise_kept(json.dumps(record).encode())

    assert ("unreadable_parameters", 3) in [(reason.code, reason.step) for reason in judged.reasons]
    assert said in judged.words


@pytest.mark.parametrize("agent", [{"name": "Support"}, ["Support"], 7, None, "Support"])
def test_an_agent_without_a_name_of_text_is_judged_like_any_other(agent):
    record = copy.deepcopy(small_record())
    record["agent"] = {"framework": "openai-agents"}
    for step in record["steps"]:
        step["agent"] = agent

    judge(parse_native(json.dumps(record).encode()))
    result, _ = replayed(json.dumps(record).encode())

    assert result.verdict == "reproduced"
