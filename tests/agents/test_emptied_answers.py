"""Recordings of a real agent in which something of the model's side is emptied."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import Agent

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import parse_native
from tests.agents.own_agents import recorded_run, replayed_by
from tests.recorder.playing import recorded
from tests.recorder.replaying import replayed
from tests.recorder.scenarios import Play, Scripted, call, says, support_agent


@pytest.fixture
def record() -> dict[str, Any]:
    looks = says(call("lookup_order", {"order_id": "ORD-1"}, "a"))
    made: dict[str, Any] = json.loads(recorded(Play(support_agent(looks, says("Ok.")), "Where is it?"), "run")[-1])
    return made


def told_by_others(record: dict[str, Any]) -> bytes:
    """As somebody else writes a native record, who need not say which answer a call belongs to."""
    for step in record["steps"]:
        step.pop("parent", None)
    return json.dumps(
        {key: value for key, value in record.items() if key not in ("recorder", "recorder.ran_with")}
    ).encode()


def test_a_call_that_no_answer_asks_for_is_the_first_difference(record: dict[str, Any]):
    record["steps"][0]["response"]["parts"] = []
    content = told_by_others(record)

    result, made = replayed(content)

    assert made is not None
    compared = compare_runs(parse_native(content), made).divergence
    assert compared is not None
    assert compared.left_step is not None
    assert result.divergence is not None
    assert (result.verdict, result.divergence.step, result.divergence.path) == ("diverged", 2, "steps[1]")
    assert (compared.left_step.index, compared.path) == (2, "steps[1]")
    assert result.facts["proof"]["same_steps"] == 1


def test_a_first_request_that_holds_nothing_is_no_start_of_a_replay(record: dict[str, Any]):
    record["steps"][0]["request"]["messages"] = []

    result, _ = replayed(json.dumps(record).encode())

    assert result.verdict == "could_not_run"
    assert result.error is not None
    assert "holds no message" in result.error


def with_instructions(words: str, *, fails: bool = False) -> Agent[None, str]:
    agent = Agent(Scripted(says("Ok.")), instructions=words)

    @agent.output_validator
    def check(output: str) -> str:
        if fails:
            raise ValueError("boom")
        return output

    return agent


def test_the_proof_names_the_first_difference_and_not_the_outcome_behind_it():
    run = recorded_run(lambda: Play(with_instructions("Be kind."), "Where is it?"))
    today = OwnAgent(agent=with_instructions("Be brief.", fails=True))

    result = replayed_by(run, today, on_difference="play_on")

    assert result.divergence is not None
    assert result.divergence.step == 1
    outcome = result.facts["proof"]["outcome"]
    assert outcome == {"state": "not_proven", "reason": f"differs at step 1, {result.divergence.path}"}
