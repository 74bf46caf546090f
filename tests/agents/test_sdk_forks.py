"""Forks of runs of the OpenAI Agents SDK: its own ways hold in them as in replays."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.run import Run
from tests.agents.forking import forked
from tests.recorder.openai_playing import bytes_of, recorded
from tests.recorder.openai_provider import provider
from tests.recorder.openai_scenarios import SCENARIOS, WAYS

UNCHANGED = {"kind": "clock", "value": 0}
HANDOFFS = [
    "a_handoff_to_an_agent_with_a_new_tool",
    "nested_handoffs",
    "a_handoff_there_and_back",
    "two_handoffs_in_one_answer",
    "a_handoff_beside_a_tool",
    "a_handoff_to_an_agent_with_structured_output",
]


def run_of(name: str) -> Run:
    with provider() as speaking:

        async def play() -> Any:
            await SCENARIOS[name](speaking, WAYS["run"])

        return parse_native(bytes_of(recorded(play)[-1]))


@pytest.mark.parametrize("name", HANDOFFS)
def test_a_fork_that_changes_nothing_is_the_recording_again(name: str):
    run = run_of(name)

    made = [forked(run, step.index, UNCHANGED)[0] for step in run.steps]

    assert [(each.verdict, each.divergence) for each in made] == [("reproduced", None)] * len(made)
