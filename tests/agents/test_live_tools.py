"""A call of a live tool goes to another process and back; the agent's loop sees what it saw when it was recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
from pydantic_ai.messages import BinaryContent, ToolReturn
from pydantic_ai.tools import DeferredToolRequests, RunContext
from pydantic_ai.toolsets import FunctionToolset

from sessions_app.agents.own_code.live_tools import run_tool
from sessions_app.agents.own_code.registry import OwnAgent
from tests.agents.own_agents import recorded_run, replayed_by
from tests.recorder.scenarios import Play, Scripted, call, says

READS = {"replay": "read"}


class Item(BaseModel):
    name: str
    count: int = 1


def raising(error: Exception) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


ACTS: dict[str, Callable[[], Any]] = {
    "text": lambda: "three",
    "nothing": lambda: None,
    "model": lambda: Item(name="w"),
    "nested": lambda: {"items": [Item(name="w"), Item(name="x")], "at": 1.5},
    "file": lambda: BinaryContent(b"\xff\xd8\x00", media_type="image/png"),
    "return": lambda: ToolReturn({"left": 3}, content=["see", BinaryContent(b"\x00", media_type="image/png")]),
    "retry": raising(ModelRetry("Ask again.")),
    "failed": raising(ToolFailed("Gone.")),
    "approval": raising(ApprovalRequired({"reason": "dear"})),
}


def play(act: Callable[[], Any]) -> Play:
    script = says(call("look", {"item": {"name": "w"}}, "l")), says("Done.")
    agent: Agent[None, Any] = Agent(
        Scripted(*script), instructions="You look.", name="looker", output_type=[str, DeferredToolRequests]
    )

    @agent.tool_plain(metadata=READS)
    def look(item: Item) -> Any:
        """Look."""
        assert isinstance(item, Item)
        return act()

    return Play(agent, "Look")


@pytest.mark.parametrize("name", ACTS)
def test_what_a_live_tool_does_is_what_the_loop_sees(name: str):
    run = recorded_run(lambda: play(ACTS[name]))
    now = play(ACTS[name])

    result = replayed_by(run, own_of(now), live=["look"])

    assert (result.verdict, result.facts["live_tools"], result.facts["drift"]) == ("reproduced", {"look": 1}, [])


@pytest.mark.parametrize("name", ACTS)
def test_a_live_tool_that_does_another_thing_is_no_reproduction(name: str):
    """The control."""
    run = recorded_run(lambda: play(ACTS[name]))

    result = replayed_by(run, own_of(play(lambda: "another thing")), live=["look"])

    assert result.verdict in ("diverged", "ran_past_recording")
    assert result.facts["live_tools"] == {"look": 1}


def test_an_error_of_a_live_tool_keeps_its_name_and_its_words():
    run = recorded_run(lambda: play(raising(KeyError("w"))))

    result = replayed_by(run, own_of(play(raising(KeyError("w")))), live=["look"])

    assert result.verdict == "reproduced"
    assert (result.observations.error.type, result.observations.error.message) == ("KeyError", "'w'")


def test_a_live_tool_gets_the_dependencies_that_the_registration_makes():
    agent: Agent[str, str] = Agent(
        Scripted(says(call("ask", {}, "a")), says("Done.")), instructions="You ask.", name="asker", deps_type=str
    )
    asked: list[tuple[str, str | None, str | None]] = []

    @agent.tool(metadata=READS)
    def ask(ctx: RunContext[str]) -> str:
        """Ask."""
        asked.append((ctx.deps, ctx.tool_name, ctx.tool_call_id))
        return "answer"

    run = recorded_run(lambda: Play(agent, "Go", deps="then"))
    replayed_by(run, OwnAgent(agent=agent, deps="now"), live=["ask"])

    assert asked == [("then", "ask", "a"), ("now", "ask", "a")]


def test_a_tool_is_found_behind_another_name():
    tools: FunctionToolset[None] = FunctionToolset(id="shop")
    ran: list[str] = []

    @tools.tool_plain(metadata=READS)
    def look(item: str) -> str:
        """Look."""
        ran.append(item)
        return "three"

    script = says(call("shop_look", {"item": "w"}, "l")), says("Done.")
    agent: Agent[None, str] = Agent(Scripted(*script), toolsets=[tools.prefixed("shop")], name="shopper")
    run = recorded_run(lambda: Play(agent, "Look"))

    result = replayed_by(run, OwnAgent(agent=agent), live=["shop_look"])

    assert (result.verdict, ran) == ("reproduced", ["w", "w"])


def test_a_tool_that_is_made_during_a_run_says_that_it_cannot_run_live():
    agent: Agent[None, str] = Agent(Scripted(says(call("look", {}, "l")), says("Done.")), name="maker")
    ran: list[str] = []

    @agent.toolset
    def made(ctx: RunContext[None]) -> FunctionToolset[None]:
        tools: FunctionToolset[None] = FunctionToolset()

        @tools.tool_plain(metadata=READS)
        def look() -> str:
            """Look."""
            ran.append("ran")
            return "three"

        return tools

    run = recorded_run(lambda: Play(agent, "Look"))
    ran.clear()

    result = replayed_by(run, OwnAgent(agent=agent), live=["look"])

    assert (result.verdict, ran) == ("could_not_run", [])
    assert result.error is not None
    assert result.error.startswith("look cannot run live: ")


def test_the_process_of_live_tools_runs_no_tool_without_the_mark():
    """Whatever it is asked for: the process that asks runs code of the team's."""
    ran: list[str] = []
    agent: Agent[None, str] = Agent(Scripted(), name="desk")

    @agent.tool_plain
    def refund() -> str:
        """Refund."""
        ran.append("refund")
        return "refunded"

    asked = {"what": "live_tool", "tool": "look", "name": "refund", "toolset": "<agent>", "call_id": "c", "retry": 0}

    answer = run_tool(OwnAgent(agent=agent), {**asked, "now": None, "arguments": {}})

    assert (list(answer), ran) == (["cannot"], [])


def own_of(made: Play) -> OwnAgent:
    return OwnAgent(agent=made.agent)
