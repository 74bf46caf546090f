"""`run_stream` runs tools beside its final text while the request is still open, and keeps their answers to itself."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.verdict import judge
from tests.recorder.playing import recorded
from tests.recorder.replaying import assert_promise_kept, assert_reproduced
from tests.recorder.scenarios import (
    CrmDown,
    Play,
    Refund,
    call,
    output_retries_exhausted,
    says,
    support_agent,
    text_output_refused_for_good,
)
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


# --- output that is refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [text_output_refused_for_good, output_retries_exhausted], ids=lambda make: make.__name__
)
def test_output_that_is_refused_is_no_failure_of_the_model_call(make: Callable[[], Play]):
    (record,) = recorded(make(), "run_stream")

    run = parse_native(record)
    step, call = run.model_calls[0]
    assert (step.error, call.response is not None) == (None, True)
    assert run.error is not None
    assert run.error.message is not None
    assert run.error.message.startswith("Output validation failed during streaming")
    judged = assert_promise_kept(record)
    assert [(judged.step, reason.code) for reason in judged.reasons] == [(len(run.steps), "error_outside_loop")]


LOOKUP = call("lookup_order", {"order_id": "ORD-1"}, "a")
REFUND, BAD_REFUND = (call("final_result", {"order_id": "ORD-1", "amount": n}, f"o{n}") for n in (5, -5))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_text_before_the_call_that_carries_the_output_is_not_the_output(strategy: Any):
    agent = support_agent(says("Let me see.", LOOKUP, REFUND), output_type=Refund, end_strategy=strategy)

    (record,) = recorded(Play(agent, "Refund?"), "run_stream")

    assert json.loads(record)["output"] == {"order_id": "ORD-1", "amount": 5.0}
    assert judge(parse_native(record)).verdict == "replayable"
    assert_reproduced(record)


def test_texts_in_place_of_the_output_are_refused_again():
    agent = support_agent(says("Five."), says("Five euros."), says(REFUND), output_type=Refund, retries=3)

    (record,) = recorded(Play(agent, "Refund?"), "run_stream")

    assert [step["kind"] for step in json.loads(record)["steps"]] == ["model", "model", "model", "tool"]
    assert_promise_kept(record)
    assert_reproduced(record)


def test_a_limit_that_keeps_the_tools_beside_the_final_text_from_running_is_reached_again():
    agent = support_agent(says("Looking now.", LOOKUP))

    (record,) = recorded(Play(agent, "Where?", usage_limits=UsageLimits(tool_calls_limit=0)), "run_stream")

    run = parse_native(record)
    assert run.error is not None
    assert (run.error.type, json.loads(record)["steps"][0]["response"]["state"]) == ("UsageLimitExceeded", "complete")
    assert_reproduced(record)


def test_calls_that_refused_output_kept_from_being_made_are_judged():
    agent = support_agent(says(BAD_REFUND, LOOKUP, REFUND), output_type=Refund, end_strategy="exhaustive", retries=3)

    (record,) = recorded(Play(agent, "Refund?"), "run_stream")

    judged = assert_promise_kept(record)
    assert (judged.step, [reason.code for reason in judged.reasons]) == (2, ["error_outside_loop"])


def test_an_output_beside_the_final_one_whose_refusal_no_message_tells_of_is_judged():
    agent = support_agent(says(REFUND, BAD_REFUND), output_type=Refund, end_strategy="exhaustive", retries=3)
    record = json.loads(recorded(Play(agent, "Refund?"), "run_stream")[0])
    assert record["steps"][2]["outcome"] == "retried"
    assert_reproduced(json.dumps(record).encode())

    del record["final"]

    judged = assert_promise_kept(json.dumps(record).encode())
    assert (judged.step, [reason.code for reason in judged.reasons]) == (2, ["tool_answer_missing"])


def test_an_answer_that_breaks_off_is_a_failure_of_the_model_call():
    async def stream(messages: Any, info: AgentInfo) -> AsyncIterator[str]:
        yield "Looking "
        raise CrmDown("the line broke")

    (record,) = recorded(Play(Agent(FunctionModel(stream_function=stream)), "Where?"), "run_stream")

    run = parse_native(record)
    assert run.error is not None
    assert (run.steps[0].error, run.error.type) == (run.error, "CrmDown")
    assert_reproduced(record)
