"""A hook that changes the answer of a streamed run, after its text was handed out."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from pydantic_ai import TextPart
from pydantic_ai.capabilities import Hooks

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.replay.agreement import produced
from sessions_app.core.run import Run
from tests.agents.own_agents import place, recorded_run, replayed_by
from tests.recorder.scenarios import Play, call, says, support_agent


def marking(word: str) -> Hooks[Any]:
    hooks: Hooks[Any] = Hooks()

    @hooks.on.after_model_request
    async def mark(ctx: Any, *, request_context: Any, response: Any) -> Any:
        parts = [
            dataclasses.replace(part, content=part.content + word) if isinstance(part, TextPart) else part
            for part in response.parts
        ]
        return dataclasses.replace(response, parts=parts)

    return hooks


def play(word: str) -> Play:
    looks = says(call("lookup_order", {"order_id": "ORD-1"}, "a"))
    return Play(support_agent(looks, says("Ok."), capabilities=[marking(word)]), "Where is it?")


@pytest.fixture(scope="module")
def run() -> Run:
    return recorded_run(lambda: play("~"), "run_stream")


@pytest.mark.parametrize("runs_tools", [False, True])
@pytest.mark.parametrize(("word", "differs"), [("~", False), ("!", True), ("", True)])
def test_todays_hook_changes_what_the_model_streamed(run: Run, word: str, differs: bool, runs_tools: bool):
    result = replayed_by(run, OwnAgent(agent=play(word).agent), runs_tools=runs_tools)

    found = ("diverged", 3, "messages[3].parts[0].content") if differs else ("reproduced", None, None)
    assert place(result) == found
    assert result.observations is not None
    agreed, _ = produced(run, result, result.observations, run_id="again")
    assert place(agreed) == found
