"""A run that a person's machine sent is held against itself, as a recording is, before it proves anything."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.observed_pairs import Tools
from sessions_app.core.replay.own_machine import judge_observed
from sessions_app.core.run import Run
from tests.recorder.openai_playing import agent, calls, lookup, one_record, run
from tests.recorder.openai_playing import says as message
from tests.recorder.playing import last_record
from tests.recorder.scenarios import Scenario, one_tool

Record = dict[str, Any]
TOOLS: tuple[Tools, ...] = ("frozen", "run")
SAYS_SO = "The run that was observed contradicts itself: "


def pydantic_record() -> Record:
    record: Record = json.loads(last_record(Scenario(one_tool), "run"))
    return record


def sdk_record() -> Record:
    script = [calls("lookup", '{"order": "A"}', "c1")], [message("It has shipped.")]
    return one_record(lambda: run(agent(*script, tools=[lookup])))


def observed_as(record: Record, change: Callable[[Record], object], tools: Tools) -> tuple[Result, Run]:
    observed = copy.deepcopy(record)
    change(observed)
    recorded, sent = (parse_native(json.dumps(each).encode()) for each in (record, observed))
    result, made = judge_observed(recorded, sent, tools=tools, run_id="observed-1")
    assert made is not None
    return result, parse_native(encode_native(made))


def _instructions(record: Record) -> None:
    record["instructions"] = "Be brief."


def _definition(record: Record) -> None:
    record["tools"][0]["description"] = "Something else."


def _said_at_the_end(record: Record) -> None:
    record["items"][-1]["raw"]["content"][0]["text"] = "It is lost."


CONTRADICTIONS: dict[str, tuple[Callable[[], Record], Callable[[Record], object], int, str]] = {
    "definition": (pydantic_record, _definition, 1, "tools_contradicted"),
    "instructions": (pydantic_record, _instructions, 4, "instructions_contradicted"),
    "decision": (pydantic_record, lambda record: record.update(deferred={"c9": "denied"}), 1, "call_contradicted"),
    "definition of the SDK": (sdk_record, _definition, 1, "tools_contradicted"),
    "instructions of the SDK": (sdk_record, _instructions, 4, "instructions_contradicted"),
    "last agent": (sdk_record, lambda record: record.update(last_agent="Other"), 4, "agent_contradicted"),
    "no items": (sdk_record, lambda record: record.update(items=[]), 4, "items_contradicted"),
    "items": (sdk_record, _said_at_the_end, 4, "items_contradicted"),
}


@pytest.mark.parametrize("tools", TOOLS)
@pytest.mark.parametrize("make", [pydantic_record, sdk_record])
def test_what_was_observed_as_it_was_recorded_is_reproduced(make: Callable[[], Record], tools: Tools):
    result, _ = observed_as(make(), lambda record: None, tools)

    assert (result.verdict, "limit" in result.facts) == ("reproduced", False)


@pytest.mark.parametrize("tools", TOOLS)
@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_what_was_observed_and_contradicts_itself_proves_nothing_from_there(what: str, tools: Tools):
    make, change, step, code = CONTRADICTIONS[what]

    result, _ = observed_as(make(), change, tools)

    assert (result.verdict, result.facts["limit"]["step"]) == ("unknown_from_step", step)
    assert result.facts["limit"]["code"] == code
    assert result.facts["limit"]["reason"].startswith(SAYS_SO)
    outcome = result.facts["proof"]["outcome"]
    assert (outcome["state"], outcome["reason"].startswith(SAYS_SO)) == ("not_comparable", True)


def test_a_tool_that_the_team_has_marked_since_is_no_contradiction():
    def mark(record: Record) -> None:
        for tool in [*record["tools"], *(tool for each in record["parameters"] for tool in each["function_tools"])]:
            tool["metadata"] = {"replay": "read"}

    assert observed_as(pydantic_record(), mark, "run")[0].verdict == "reproduced"


def test_what_the_recording_says_against_itself_is_said_of_the_recording():
    record = sdk_record()
    record["last_agent"] = "Other"

    result, _ = observed_as(record, lambda record: None, "frozen")

    assert result.verdict == "unknown_from_step"
    assert not result.facts["limit"]["reason"].startswith(SAYS_SO)


def test_a_difference_says_more_than_a_contradiction_of_what_was_observed():
    def change(record: Record) -> None:
        _definition(record)
        record["steps"][1]["result"] = {"id": "ORD-2"}

    result, _ = observed_as(pydantic_record(), change, "run")

    assert (result.verdict, result.divergence and result.divergence.step) == ("diverged", 2)


def test_an_outcome_that_the_machine_calls_unproven_is_not_proven():
    result, _ = observed_as(pydantic_record(), lambda record: record.update(outcome_unproven="by a model"), "run")

    assert (result.verdict, result.facts["limit"]["code"]) == ("unknown_from_step", "outcome_unproven")
    assert result.facts["proof"]["outcome"]["state"] == "not_comparable"


@pytest.mark.parametrize("tools", TOOLS)
@pytest.mark.parametrize("make", [pydantic_record, sdk_record])
def test_another_input_is_a_difference_and_is_kept(make: Callable[[], Record], tools: Tools):
    result, made = observed_as(make(), lambda record: record.update(input="Something else."), tools)

    assert result.divergence is not None
    assert (result.verdict, result.divergence.step, result.divergence.path) == ("diverged", 1, "input")
    assert result.divergence.replayed == "Something else."
    assert made.input is not None
    assert made.input.value == "Something else."
