"""Runs that went on with arguments that a person approved a call with, in place of the model's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.replay.agreement import produced
from sessions_app.core.run import Run
from tests.agents.forking import answer_of, forked
from tests.agents.own_agents import fork_made_by, own, recorded_run, replayed_by
from tests.agents.test_code_fork_tools import order_of
from tests.agents.test_code_rare import approved_with_other_arguments as approved

UNCHANGED = {"kind": "clock", "value": 0}
APPROVED = {"x": 7}


@pytest.fixture(scope="module")
def run() -> Run:
    """1 pay, 2 model."""
    found = recorded_run(approved)
    assert found.steps[0].extra["approved_arguments"] == APPROVED
    return found


def by_code(run: Run, *, times: int = 10) -> Run:
    result = replayed_by(run, own(approved(times=times)), runs_tools=True, on_difference="play_on")
    assert result.observations is not None
    return produced(run, result, result.observations, run_id="again")[1]


@pytest.mark.parametrize("of_code", [False, True], ids=["rebuilt", "own code"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_fork_approves_with_the_same(run: Run, at: int, of_code: bool):
    order = order_of(at, UNCHANGED, tools={})
    result, made = fork_made_by(run, own(approved()), order) if of_code else forked(run, at, UNCHANGED)

    assert (result.verdict, result.divergence) == ("reproduced", None)
    assert made is not None
    assert made.steps[0].extra["approved_arguments"] == APPROVED
    assert compare_runs(run, made).identical


def test_the_code_of_today_runs_with_what_was_approved_from_a_fork_too(run: Run):
    """As a golden does that was made from a fork which shows the repair."""
    _, fork = forked(run, 1, {"kind": "tool_result", "step": 1, "value": 77}, on_difference="play_on")

    assert fork is not None
    assert (answer_of(by_code(fork), 1), answer_of(by_code(fork, times=11), 1)) == (70, 77)
    assert by_code(run).steps[0].extra["approved_arguments"] == APPROVED


def test_who_denies_the_call_approves_nothing(run: Run):
    denied = {"kind": "approval", "step": 1, "value": "denied", "message": "Not today."}

    for _, made in (forked(run, 1, denied), fork_made_by(run, own(approved()), order_of(1, denied, tools={}))):
        assert made is not None
        assert "approved_arguments" not in made.steps[0].extra


def test_what_one_run_was_approved_with_and_its_replay_not_is_a_difference(run: Run):
    made = by_code(run)
    forgotten = replace(made, steps=(replace(made.steps[0], extra={}), *made.steps[1:]))

    assert compare_runs(run, made).identical
    found = compare_runs(run, forgotten).divergence
    assert found is not None
    assert found.path == "approved_arguments"
