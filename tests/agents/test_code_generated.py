"""Many agents, tools in every place: in a replay none of them runs, whatever was asked for."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.run import Run
from tests.agents.made_agents import Made, made_agent
from tests.agents.own_agents import never_asked, replayed_by
from tests.recorder.playing import record_of

SEEDS = range(2000 if os.environ.get("TRIAL_SIZE") == "full" else 100)
ABOUT = 10
"""Agents in one test."""


def recorded(seeds: range) -> dict[int, tuple[Run, Made]]:
    agents = {seed: made_agent(seed) for seed in seeds}

    async def play() -> None:
        for own, _ in agents.values():
            await own.agent.run("Go.")

    runs = {run.agent.name: run for run in map(parse_native, record_of(play))}
    return {seed: (runs[f"made_{seed}"], made) for seed, (_, made) in agents.items()}


@pytest.mark.parametrize("first", SEEDS[::ABOUT])
def test_no_tool_runs_in_any_mode(first: int):
    for seed, (run, then) in recorded(range(first, first + ABOUT)).items():
        assert then.ran, "the recorded run ran its tools, or this would prove nothing"
        modes: list[dict[str, Any]] = [
            {"ask": never_asked},
            {"ask": never_asked, "live": then.names},
        ]
        for mode in modes:
            own, now = made_agent(seed)
            result = replayed_by(run, own, **mode)
            assert (now.ran, now.opened) == ({}, {}), (seed, mode)
            verdict = "reproduced" if run.agent.output_function is None else "unknown_from_step"
            step = None if result.divergence is None else result.divergence.step
            expected = None if verdict == "reproduced" else len(run.steps) + 1
            assert (result.verdict, result.error, step) == (verdict, None, expected), (seed, mode)


def test_without_the_policy_everything_runs():
    own, made = made_agent(1)

    asyncio.run(own.agent.run("Go."))

    assert made.ran
