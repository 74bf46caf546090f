"""A team's own agent whose tools run: unchanged they give the recorded run, and a change shows where it begins."""

from __future__ import annotations

import pytest

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.produce import produced_run
from tests.agents.own_agents import own, recorded_run, replayed_by
from tests.recorder.scenarios import SCENARIOS, Scenario

WITH_AGENTS_INSIDE = {"sub_agents", "parallel_sub_agents"}


def place(result: Result) -> tuple[str, int | None, str | None]:
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_unchanged_tools_give_the_recorded_run(scenario: Scenario):
    run = recorded_run(scenario.make)
    result = replayed_by(run, own(scenario.make()), runs_tools=True)

    assert (result.verdict, result.divergence, result.error) == ("reproduced", None, None)
    assert result.observations is not None
    assert compare_runs(run, produced_run(run, result.observations, run_id="again")).identical
