"""`run_stream` runs tools beside its final text while the request is still open, and keeps their answers to itself."""

import json
from typing import Any

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.anomalies import find_anomalies
from sessions_app.core.judge.verdict import judge
from tests.recorder.playing import recorded
from tests.recorder.replaying import assert_reproduced
from tests.recorder.streams import STRATEGIES, text_then_call

SKIPPED = "Tool not executed - a final result was already processed."


def stream_record(strategy: str, **options: Any) -> bytes:
    (record,) = recorded(text_then_call(strategy, **options), "run_stream")
    return record


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_call_beside_the_final_text_is_one_step_with_its_answer(strategy: str):
    answer = SKIPPED if strategy == "early" else {"id": "ORD-1", "status": "shipped"}

    record = json.loads(stream_record(strategy))

    assert [step["kind"] for step in record["steps"]] == ["model", "tool"]
    call = record["steps"][1]
    assert (call["call_id"], call["parent"], call["outcome"], call["result"]) == ("a", 1, "success", answer)
    assert record["output"] == "Looking now."


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_last_messages_hold_what_the_call_came_to(strategy: str):
    record = json.loads(stream_record(strategy))

    (message,) = record["final"]["messages"]
    assert (record["final"]["after"], message["kind"]) == (1, "request")
    assert [(part["part_kind"], part["tool_call_id"]) for part in message["parts"]] == [("tool-return", "a")]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_such_a_run_is_judged_and_found_right(strategy: str):
    record = stream_record(strategy)

    assert find_anomalies(parse_native(record)) == []
    assert judge(parse_native(record)).verdict == "replayable"
    assert_reproduced(record)


def test_a_tool_that_crashes_beside_the_final_text_ends_the_run():
    record = stream_record("graceful", crashes=True)

    run = parse_native(record)
    assert run.error is not None
    assert (run.error.type, [step.kind for step in run.steps]) == ("CrmDown", ["model", "tool"])
    assert (run.steps[0].error, run.tool_calls[0][1].outcome) == (None, "crashed")
    assert_reproduced(record)
