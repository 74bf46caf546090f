"""A difference is reported at the step that was changed, and what no step holds is judged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_app.core.formats.native import encode_native, parse_native
from tests.recorder.playing import last_record, recorded
from tests.recorder.rare_agents import result_from_outside_with_a_prompt, results_for_tools_that_run_elsewhere
from tests.recorder.replaying import assert_promise_kept, assert_reproduced, replayed, verdict_of
from tests.recorder.scenarios import (
    Scenario,
    approval_beside_another_call,
    approval_second,
    denial_beside_another_call,
    one_tool,
    output_tool,
    repeated_ids_in_one_run,
    validation_errors,
)


def reproduced(make: Any, way: str = "run") -> dict[str, Any]:
    record = last_record(Scenario(make), way)
    assert_reproduced(record)
    read: dict[str, Any] = json.loads(record)
    return read


@pytest.mark.parametrize("make", [approval_second, approval_beside_another_call, denial_beside_another_call])
@pytest.mark.parametrize("change", [{"outcome": "failed"}, {"part_kind": "retry-prompt"}])
def test_another_outcome_told_of_a_call_that_the_run_was_resumed_with_is_one_of_the_request(make: Any, change: Any):
    record = reproduced(make)
    record["steps"][-1]["request"]["messages"][-1]["parts"][0] |= change

    verdict, step, path = verdict_of(record)

    assert (verdict, step) == ("diverged", len(record["steps"]))
    assert path is not None
    assert path.endswith(".outcome")


def test_another_outcome_of_one_of_several_resumed_calls_is_one_of_the_request():
    record = json.loads(recorded(results_for_tools_that_run_elsewhere())[-1])
    record["steps"][-1]["request"]["messages"][-1]["parts"][1]["outcome"] = "denied"

    assert verdict_of(record) == ("diverged", 4, "messages[2].parts[1].outcome")


def test_an_answer_under_an_id_that_came_before_is_one_of_its_own_call():
    record = reproduced(repeated_ids_in_one_run)
    assert [step["kind"] for step in record["steps"]] == ["model", "tool", "model", "tool", "model"]
    record["steps"][4]["request"]["after"] = 1

    assert verdict_of(record)[:2] == ("diverged", 5)


@pytest.mark.parametrize("way", ["run", "run_stream"])
@pytest.mark.parametrize("outcome", ["retried", "failed", "denied"])
def test_another_outcome_of_an_output_is_one_of_its_own_step(outcome: str, way: str):
    record = reproduced(output_tool, way)
    record["steps"][-1]["outcome"] = outcome

    assert verdict_of(record) == ("diverged", len(record["steps"]), "outcome")


# --- what is said beside the requests ------------------------------------------------------------


def codes(record: dict[str, Any]) -> list[str]:
    return [reason.code for reason in assert_promise_kept(json.dumps(record).encode()).reasons]


@pytest.mark.parametrize("make", [approval_second, approval_beside_another_call])
def test_an_input_of_a_resumed_run_that_no_request_holds_is_judged(make: Any):
    record = reproduced(make)
    record["input"] = "Pay it all back."

    assert codes(record) == ["input_contradicts"]


def test_an_input_of_a_resumed_run_that_its_request_holds_is_none():
    record = json.loads(recorded(result_from_outside_with_a_prompt())[-1])

    assert record["input"] == "And hurry"
    assert codes(record) == []


def test_a_run_that_is_said_to_have_ended_without_any_message_is_judged():
    record = reproduced(one_tool)
    record["final"] = {"after": 0, "messages": []}
    again = json.loads(encode_native(parse_native(json.dumps(record).encode())))

    assert codes(record) == codes(again) == ["past_contradicted"]


@pytest.mark.parametrize(("missing", "same"), [((3,), 2), ((1, 3), 0)])
def test_steps_before_a_request_that_was_not_captured_are_the_same(missing: tuple[int, ...], same: int):
    record = reproduced(one_tool)
    for index in missing:
        del record["steps"][index - 1]["request"]

    result, _ = replayed(json.dumps(record).encode())

    assert (result.verdict, result.facts["proof"]["same_steps"]) == ("reproduced", same)


@pytest.mark.parametrize("change", [{"type": ["missing"]}, {"type": None}, {"loc": 5}, {"loc": [["a"]]}])
def test_an_error_of_arguments_that_is_none_is_a_difference(change: dict[str, Any]):
    record = reproduced(validation_errors)
    refused = next(step for step in record["steps"] if (step.get("retry") or {}).get("cause") == "validation_error")
    refused["result"][0] |= change

    assert verdict_of(record)[0] == "diverged"
