"""A loop of one's own records that a tool failed; what the model was told of it stands in the next request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import ToolCall
from tests.recorder.replaying import assert_promise_kept, replayed

ERROR = {"type": "HTTPStatusError", "message": "503 Service Unavailable"}
WORDS = "HTTPStatusError: 503 Service Unavailable"
TOOL = {"name": "cancel", "parameters_json_schema": {"type": "object", "properties": {}}}
ASKS = {
    "kind": "response",
    "parts": [{"part_kind": "tool-call", "tool_name": "cancel", "args": {}, "tool_call_id": "c1"}],
}
SAYS = {"kind": "response", "parts": [{"part_kind": "text", "content": "I could not cancel it."}]}


def request(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "request", "parts": list(parts)}


def model(number: int, message: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    sent = {"messages": [message], **({"after": number} if number else {})}
    return {"kind": "model", "request": sent, "response": response, "parameters": 0}


def record(outcome: str | None, told: dict[str, Any] | None) -> bytes:
    """`told` is beside the words of the answer in the second request; None for a run that ended with the error."""
    asked = model(0, request({"part_kind": "user-prompt", "content": "Cancel it."}), ASKS)
    call = {"kind": "tool", "tool_name": "cancel", "call_id": "c1", "arguments": {}, "parent": 1, "error": ERROR}
    steps = [asked, {**call, **({} if outcome is None else {"outcome": outcome})}]
    end: dict[str, Any] = {"status": "error", "error": ERROR}
    if told is not None:
        answer = {"part_kind": "tool-return", "tool_name": "cancel", "tool_call_id": "c1", "content": WORDS, **told}
        steps.append(model(1, request(answer), SAYS))
        end = {"output": "I could not cancel it."}
    offered = [{"function_tools": [TOOL], "output_mode": "text", "allow_text_output": True}]
    head = {"format": "agent-replay.run", "version": 1, "run_id": "run_told", "input": "Cancel it."}
    return json.dumps(
        {**head, "agent": {"framework": "own-loop"}, "parameters": offered, "steps": steps, **end}
    ).encode()


@pytest.mark.parametrize("outcome", [None, "failed", "crashed"])
@pytest.mark.parametrize("told", [{}, {"outcome": "failed"}, None], ids=["plain", "failed", "ended"])
def test_a_call_that_failed_replays_without_its_words(outcome: str | None, told: dict[str, Any] | None) -> None:
    run = parse_document(record(outcome, told))

    result, _ = replayed(record(outcome, told))

    assert (judge(run).verdict, judge(run).reasons) == ("replayable", ())
    assert result.verdict == "reproduced"
    assert parse_document(encode_native(run)) == run


def test_its_answer_is_what_the_model_was_told() -> None:
    call = parse_document(record("failed", {})).steps[1].call

    assert isinstance(call, ToolCall)
    assert call.result is not None
    assert call.result.value == WORDS


def test_a_request_that_says_that_it_went_well_contradicts_the_error() -> None:
    said = judge(parse_document(record("failed", {"outcome": "success"})))

    assert (said.verdict, said.reasons[0].code) == ("replayable_to_step", "answer_contradicted")


def test_words_of_another_call_are_not_taken() -> None:
    said = judge(parse_document(record("failed", {"tool_call_id": "c2"})))

    assert said.verdict != "replayable"


@pytest.mark.parametrize("outcome", [None, "failed", "retried"])
@pytest.mark.parametrize("kind", ["tool-return", "retry-prompt"])
@pytest.mark.parametrize("framework", ["own-loop", "pydantic-ai", "openai-agents"])
def test_a_loop_that_names_its_library_may_write_the_error_alone(
    framework: str, kind: str, outcome: str | None
) -> None:
    told = json.loads(record(outcome, {"part_kind": kind})) | {"agent": {"framework": framework}}

    result, _ = replayed(json.dumps(told).encode())

    assert judge(parse_document(json.dumps(told).encode())).reasons == ()
    assert (result.verdict, result.divergence) == ("reproduced", None)


@pytest.mark.parametrize("outcome", [None, "failed", "retried"])
@pytest.mark.parametrize("framework", ["own-loop", "pydantic-ai", "openai-agents"])
def test_a_loop_may_write_error_and_words_of_what_it_told_in_a_retry_prompt(
    framework: str, outcome: str | None
) -> None:
    told = json.loads(record(outcome, {"part_kind": "retry-prompt"})) | {"agent": {"framework": framework}}
    told["steps"][1]["result"] = WORDS

    result, _ = replayed(json.dumps(told).encode())

    assert judge(parse_document(json.dumps(told).encode())).reasons == ()
    assert (result.verdict, result.divergence) == ("reproduced", None)

    told["steps"][1]["result"] = "Something else."

    assert replayed(json.dumps(told).encode())[0].verdict != "reproduced"


@pytest.mark.parametrize("given", [WORDS, {"code": 503}], ids=["words", "an object whose text was sent"])
@pytest.mark.parametrize("framework", ["own-loop", "pydantic-ai", "openai-agents"])
def test_a_loop_may_write_the_words_of_a_retry_alone(framework: str, given: Any) -> None:
    told = json.loads(record(None, {"part_kind": "retry-prompt"})) | {"agent": {"framework": framework}}
    del told["steps"][1]["error"]
    told["steps"][1]["result"] = given
    said = told["steps"][2]["request"]["messages"][0]["parts"][0]
    said["content"] = given if isinstance(given, str) else json.dumps(given)

    result, _ = replayed(json.dumps(told).encode())

    assert judge(parse_document(json.dumps(told).encode())).reasons == ()
    assert (result.verdict, result.divergence) == ("reproduced", None)

    said["content"] = "Something else."

    assert replayed(json.dumps(told).encode())[0].verdict != "reproduced"


def test_a_message_beside_a_retry_was_put_there_by_code() -> None:
    told = json.loads(record(None, {"part_kind": "retry-prompt"}))
    told["steps"][2]["request"]["messages"][0]["parts"].append({"part_kind": "user-prompt", "content": "Be quick."})

    said = assert_promise_kept(json.dumps(told).encode())

    assert (said.verdict, said.reasons[0].code) == ("replayable_to_step", "message_from_code")


@pytest.mark.parametrize("framework", ["pydantic-ai", "openai-agents"])
def test_what_a_library_s_recorder_left_out_is_not_taken_from_messages(framework: str) -> None:
    told = json.loads(record(None, {})) | {"agent": {"framework": framework}, "recorder": {"version": "0.1.0"}}

    said = judge(parse_document(json.dumps(told).encode()))

    assert said.reasons[0].message == "Step 2 (cancel) never ran, and has an error as well."
