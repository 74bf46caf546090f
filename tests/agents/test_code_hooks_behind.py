"""Hooks behind a tool: where the tool is frozen they do not run, and the replay says so."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Hooks

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.proof import read_proof
from sessions_app.core.replay.words import ReplayFacts, verdict_in_words
from tests.agents.own_agents import observed_by, place, recorded_run, replayed_by
from tests.recorder.scenarios import Play, Scripted, call, says

NOT_RUN = "was not run after the tools, which returned their recorded answers"


class Masks(AbstractCapability[Any]):
    """Takes a word out of what tools give."""

    async def after_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        return result.replace("secret", "***")


class Watches(AbstractCapability[Any]):
    """Stands in front of tools alone."""

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return args


def masking() -> Hooks[Any]:
    hooks: Hooks[Any] = Hooks()

    @hooks.on.after_tool_execute
    async def mask(ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        return result.replace("secret", "***")

    return hooks


def play(*capabilities: AbstractCapability[Any]) -> Play:
    model = Scripted(says(call("look", {"x": 1}, "1")), says("Done."))
    agent = Agent(model, name="agent", capabilities=list(capabilities))

    @agent.tool_plain
    def look(x: int) -> str:
        return "a secret"

    return Play(agent, "Look it up.")


def with_code(made: Play, today: Play, *, runs_tools: bool = False) -> Result:
    return replayed_by(recorded_run(lambda: made), OwnAgent(agent=today.agent), runs_tools=runs_tools)


def on_own_machine(made: Play, today: Play, *, tools: Any = "frozen") -> Result:
    return observed_by(recorded_run(lambda: made), today, tools=tools)


def sentence_of(result: Result) -> str:
    assert result.verdict == "reproduced"
    return verdict_in_words(ReplayFacts(verdict="reproduced", proof=read_proof(result.facts["proof"])))


each_place = pytest.mark.parametrize("replay", [with_code, on_own_machine])


@each_place
@pytest.mark.parametrize("then", [(), (Masks(),)], ids=["new", "as then"])
def test_a_hook_behind_a_frozen_tool_is_named(then: tuple[AbstractCapability[Any], ...], replay: Any):
    result = replay(play(*then), play(Masks()))

    words = f"the requests agree; Masks.after_tool_execute {NOT_RUN}"
    assert result.facts["proof"]["requests"] == {"state": "not_comparable", "reason": words}
    assert sentence_of(result) == f"Reproduced: same 3 steps, same answer; {words}"


@each_place
def test_a_registered_hook_is_named_too(replay: Any):
    assert f"Hooks.after_tool_execute {NOT_RUN}" in sentence_of(replay(play(), play(masking())))


@each_place
@pytest.mark.parametrize("today", [(), (Watches(),), (Hooks(),)], ids=["none", "in front", "empty"])
def test_without_such_a_hook_the_requests_are_proven(today: tuple[AbstractCapability[Any], ...], replay: Any):
    result = replay(play(*today), play(*today))

    assert result.facts["proof"]["requests"] == {"state": "proven", "reason": None}


def test_where_the_tool_runs_the_hook_behind_it_shows():
    assert place(with_code(play(Masks()), play(Masks()), runs_tools=True)) == ("reproduced", None, None)
    assert place(with_code(play(), play(Masks()), runs_tools=True)) == ("diverged", 2, "result")
    assert place(on_own_machine(play(Masks()), play(Masks()), tools="run")) == ("reproduced", None, None)
    assert place(on_own_machine(play(), play(Masks()), tools="run")) == ("diverged", 2, "result")
