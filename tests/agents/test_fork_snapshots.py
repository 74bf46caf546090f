"""Forks of runs whose recorder took snapshots: the first difference is the change, not a snapshot around it."""

from __future__ import annotations

import pytest

from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run
from tests.agents.forking import forked
from tests.agents.own_agents import fork_made_by, own, place, recorded_run
from tests.agents.test_code_fork_tools import order_of
from tests.agents.test_code_tools_run import cancelled, desk

STATE = {"n": 1}
KINDS = ["model", "other", "tool", "other", "model", "other", "tool", "other", "model"]


@pytest.fixture(scope="module")
def run() -> Run:
    """1 model, 3 lookup_order, 5 model, 7 cancel_order, 9 model; a snapshot behind each."""
    found = recorded_run(cancelled, state=lambda: STATE, snapshot_every=1)
    assert [step.kind for step in found.steps][: len(KINDS)] == KINDS
    return found


GONE = {"kind": "tool_result", "step": 3, "value": "Order gone"}
REFUSED = {"kind": "tool_result", "step": 7, "value": "Not eligible."}
ELSE = {"kind": "model_answer", "step": 5, "value": {"text": "One moment."}}

CASES = [(3, GONE, "result"), (7, REFUSED, "result"), (5, REFUSED, "result"), (5, ELSE, None), (1, ELSE, None)]


@pytest.mark.parametrize(("at", "change", "path"), CASES)
@pytest.mark.parametrize("of_code", [False, True], ids=["rebuilt", "own code"])
def test_the_first_difference_of_a_fork_is_its_change(
    run: Run, at: int, change: JsonObject, path: str | None, of_code: bool
):
    if of_code:
        result, made = fork_made_by(run, own(desk()), order_of(at, change, tools={}, on_difference="play_on"))
    else:
        result, made = forked(run, at, change, on_difference="play_on")

    assert made is not None
    assert place(result)[:2] == ("diverged", change["step"])
    assert path in (None, place(result)[2])
    assert [step.kind for step in made.steps][: change["step"]] == KINDS[: change["step"]]
    assert made.steps[change["step"] - 1].source == "by_hand"
