"""Replays that come to no outcome, and recordings whose last answer leads to none."""

from __future__ import annotations

import json

import pytest
from pydantic_ai import ModelRetry

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.replay.produce import produced_run
from tests.agents.own_agents import own, recorded_run, replayed_by
from tests.agents.test_odd_fields import Record, holders, reproduces, small_record
from tests.recorder.replaying import assert_promise_kept
from tests.recorder.scenarios import Play, Refund, call, says, support_agent


def with_last(text: str, **fields: str) -> Record:
    record = small_record()
    holders(record)["text"]["content"] = record["output"] = text
    holders(record)["answer"].update(fields)
    return record


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (with_last(""), "The last answer is empty. A replay would ask the model again."),
        (with_last("A.", state="suspended"), "The last answer was suspended. A replay would ask the model again."),
    ],
    ids=["empty", "suspended"],
)
def test_an_answer_with_which_no_loop_ends_is_judged(record, words):
    judged = assert_promise_kept(json.dumps(record).encode())

    assert (judged.verdict, judged.step, judged.words) == ("replayable_to_step", 3, words)


@pytest.mark.parametrize("record", [with_last(" "), with_last("A.", state="complete")])
def test_an_answer_of_a_space_is_one(record):
    assert reproduces(record)


def checked(*, refuses: bool) -> Play:
    agent = support_agent(says("Done."))

    @agent.output_validator
    def check(text: str) -> str:
        if refuses:
            raise ModelRetry("Say more.")
        return text

    return Play(agent, "go")


@pytest.mark.parametrize(
    ("refuses", "verdict", "outcome"),
    [(False, "reproduced", "proven"), (True, "ran_past_recording", "not_proven")],
)
def test_without_an_outcome_none_is_proven(refuses, verdict, outcome):
    """The team's code of today refuses the answer that the recording ends with."""
    run = recorded_run(lambda: checked(refuses=False), "run")

    result = replayed_by(run, own(checked(refuses=refuses)))

    assert (result.verdict, result.facts["proof"]["outcome"]["state"]) == (verdict, outcome)


UP_TO = {"state": "not_proven", "reason": "the replay agrees with the recording only up to step 1"}


@pytest.mark.parametrize(("refuses", "part"), [(False, {"state": "proven", "reason": None}), (True, UP_TO)])
def test_behind_the_recording_nothing_is_proven_of_the_requests(refuses, part):
    """The loop makes one more than the recording holds."""
    run = recorded_run(lambda: checked(refuses=False), "run")

    result = replayed_by(run, own(checked(refuses=refuses)))

    assert (result.facts["proof"]["requests"], result.facts["proof"]["parameters"]) == (part, part)
    assert result.facts["proof"]["same_steps"] == 1


def with_fee(amount: float) -> Play:
    agent = support_agent(says(call("final_result", {"order_id": "ORD-1", "amount": 5}, "o")), output_type=Refund)

    @agent.output_validator
    def fee(refund: Refund) -> Refund:
        return refund.model_copy(update={"amount": amount})

    return Play(agent, "Refund?")


def test_a_field_of_the_output_that_code_changes_is_named_by_the_replay_and_by_the_comparison():
    run = recorded_run(lambda: with_fee(1.5))

    result = replayed_by(run, own(with_fee(9.0)))

    found = result.divergence
    assert found is not None
    assert result.observations is not None
    assert (found.path, found.recorded, found.replayed) == ("output.amount", 1.5, 9.0)
    made = produced_run(run, result.observations, run_id="again")
    compared = compare_runs(run, made).divergence
    assert compared is not None
    assert compared.path == "output.amount"
