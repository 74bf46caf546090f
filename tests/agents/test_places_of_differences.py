"""A difference is reported at the step that was changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.recorder.playing import last_record, recorded
from tests.recorder.rare_agents import results_for_tools_that_run_elsewhere
from tests.recorder.replaying import assert_reproduced, verdict_of
from tests.recorder.scenarios import (
    Scenario,
    approval_beside_another_call,
    approval_second,
    denial_beside_another_call,
    output_tool,
    repeated_ids_in_one_run,
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
