"""Which of the team's tools run in a replay: none, but for those that were asked for and may."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run
from tests.agents.own_agents import recorded_run, replayed_by
from tests.recorder.scenarios import Play, Scripted, call, says

READS = {"replay": "read"}


class Desk:
    """An agent with a tool that reads and one that writes; `ran` counts them."""

    def __init__(self, *script: ModelResponse, stock: int = 3, marks: JsonObject | None = None, **arguments: Any):
        self.ran: Counter[str] = Counter()
        self.agent = Agent(Scripted(*script), instructions="You sell.", name="desk", **arguments)

        @self.agent.tool_plain(metadata=marks)
        def stock_of(item: str) -> dict[str, Any]:
            """How many there are."""
            self.ran["stock_of"] += 1
            return {"item": item, "left": stock}

        @self.agent.tool_plain
        async def order(item: str) -> str:
            """Order."""
            self.ran["order"] += 1
            return f"ordered {item}"

    @property
    def own(self) -> OwnAgent:
        return OwnAgent(agent=self.agent)


BOTH = says(call("stock_of", {"item": "w"}, "s"), call("order", {"item": "w"}, "o"))


@pytest.fixture(scope="module")
def run() -> Run:
    """1 model, 2 stock_of, 3 order, 4 model."""
    return recorded_run(lambda: Play(Desk(BOTH, says("Done.")).agent, "Buy w"))


def test_by_default_no_tool_runs(run: Run):
    desk = Desk(marks=READS)

    result = replayed_by(run, desk.own)

    assert (result.verdict, desk.ran, result.facts["live_tools"]) == ("reproduced", {}, {})


def test_a_tool_that_reads_runs_when_it_is_asked_for(run: Run):
    desk = Desk(marks=READS)

    result = replayed_by(run, desk.own, live=["stock_of"])

    assert (result.verdict, desk.ran) == ("reproduced", {"stock_of": 1})
    assert result.facts["live_tools"] == {"stock_of": 1}
    assert result.facts["sources"] == {"recorded": 3, "live": 1}
    sources = {call.tool_name: call.source for call in result.observations.calls}
    assert sources == {"stock_of": "live", "order": "recorded"}


def test_what_a_live_tool_says_now_is_compared_with_then(run: Run):
    result = replayed_by(run, Desk(marks=READS, stock=0).own, live=["stock_of"])

    assert result.facts["drift"] == [{"tool": "stock_of", "step": 2, "path": "result.left", "recorded": 3, "now": 0}]
    found = result.divergence
    assert (result.verdict, found.step, found.path) == ("diverged", 2, "result.left")


def test_calls_with_the_same_id_are_told_apart():
    script = says(call("stock_of", {"item": "w"}, "same")), says(call("order", {"item": "w"}, "same")), says("Done.")
    run = recorded_run(lambda: Play(Desk(*script).agent, "Buy w"))
    desk = Desk(marks=READS)

    result = replayed_by(run, desk.own, live=["stock_of"])

    assert (result.verdict, desk.ran) == ("reproduced", {"stock_of": 1})
    assert result.facts["sources"] == {"recorded": 4, "live": 1}


@pytest.mark.parametrize("marks", [None, {"replay": "write"}, {"replay": True}, {"other": "read"}])
def test_a_tool_that_does_not_say_that_it_only_reads_stays_frozen(run: Run, marks: JsonObject | None):
    desk = Desk(marks=marks)

    result = replayed_by(run, desk.own, live=["stock_of"], on_difference="play_on")

    assert desk.ran == {}
    assert [words.partition(" ")[0] for words in result.facts["lint"]] == ["stock_of"]


def test_a_tool_that_writes_is_no_live_tool(run: Run):
    desk = Desk(marks=READS)

    result = replayed_by(run, desk.own, live=["stock_of", "order"])

    assert desk.ran == {"stock_of": 1}
    assert [words.partition(" ")[0] for words in result.facts["lint"]] == ["order"]


def test_nothing_runs_when_a_call_beside_it_has_no_answer(run: Run):
    """The code of today has a hook that answers by itself, and asks for what nobody recorded."""
    asks = says(call("stock_of", {"item": "w"}, "s"), call("order", {"item": "other"}, "o"))
    desk = Desk(marks=READS, capabilities=[Saying(asks)])

    result = replayed_by(run, desk.own, live=["stock_of"])

    assert (result.verdict, desk.ran) == ("diverged", {})


class Saying(AbstractCapability[Any]):
    def __init__(self, answer: ModelResponse) -> None:
        self._answer = answer

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return self._answer


# --- other agents inside


def test_an_agent_inside_of_a_live_tool_ends_the_replay():
    def desk(*script: ModelResponse) -> tuple[Agent[None, str], list[str]]:
        agent: Agent[None, str] = Agent(Scripted(*script), instructions="You ask.", name="outer")
        inner: Agent[None, str] = Agent(Scripted(says("Inner.")), name="inner")
        wrote: list[str] = []

        @agent.tool_plain(metadata=READS)
        async def delegate(task: str) -> str:
            """Delegate."""
            try:
                return (await inner.run(task)).output
            finally:
                wrote.append(task)

        return agent, wrote

    script = says(call("delegate", {"task": "t"}, "d")), says("Done.")
    run = recorded_run(lambda: Play(desk(*script)[0], "Go"))
    agent, began = desk()

    result = replayed_by(run, OwnAgent(agent=agent), live=["delegate"])

    assert result.verdict == "fixture_missing"
    assert result.facts["asked_for"]["tool"] == "the model of agent 'inner'"
    assert began == ["t"]


def test_an_agent_that_a_check_asks_ends_the_replay():
    """Checks run as they are, and this one swallows whatever happens to it."""
    judge: Agent[None, str] = Agent(Scripted(says("fine"), says("fine")), name="judge")

    def make(instructions: str = "You greet.") -> Agent[None, str]:
        agent: Agent[None, str] = Agent(Scripted(says("Hello.")), instructions=instructions, name="greeter")

        @agent.output_validator
        async def judged(output: str) -> str:
            try:
                await judge.run(output)
            except BaseException:
                return output
            return output

        return agent

    run = recorded_run(lambda: Play(make(), "Hi"))

    result = replayed_by(run, OwnAgent(agent=make()))
    with_other_prompt = replayed_by(run, OwnAgent(agent=make("You greet kindly.")), on_difference="play_on")

    assert (result.verdict, with_other_prompt.verdict) == ("fixture_missing", "diverged")
    assert result.facts["asked_for"]["tool"] == "the model of agent 'judge'"
    assert with_other_prompt.divergence.path == "messages[0].instructions"


def test_an_agent_among_tasks_of_a_live_tool_ends_the_replay():
    """A group of tasks wraps what ends it."""

    def make(*script: ModelResponse) -> Agent[None, str]:
        agent: Agent[None, str] = Agent(Scripted(*script), instructions="You ask.", name="outer")

        @agent.tool_plain(metadata=READS)
        async def delegate(task: str) -> str:
            """Delegate."""
            inner: Agent[None, str] = Agent(Scripted(says("Inner.")), name="inner")
            async with asyncio.TaskGroup() as group:
                asked = group.create_task(inner.run(task))
            return asked.result().output

        return agent

    script = says(call("delegate", {"task": "t"}, "d")), says("Done.")
    run = recorded_run(lambda: Play(make(*script), "Go"))

    result = replayed_by(run, OwnAgent(agent=make()), live=["delegate"])

    assert (result.verdict, result.facts["asked_for"]["tool"]) == ("fixture_missing", "the model of agent 'inner'")


# --- functions that make the output


def test_a_function_that_makes_the_output_does_not_run():
    booked: list[str] = []

    def make(*script: ModelResponse) -> Agent[None, str]:
        def book(order_id: str) -> str:
            """Book."""
            booked.append(order_id)
            return f"booked {order_id}"

        return Agent(Scripted(*script), instructions="You book.", output_type=book, name="booker")

    run = recorded_run(lambda: Play(make(says(call("final_result", {"order_id": "1"}, "f"))), "Book"))
    assert booked == ["1"]

    result = replayed_by(run, OwnAgent(agent=make()))

    assert (result.verdict, booked) == ("unknown_from_step", ["1"])
    assert (
        result.facts["limit"]["reason"]
        == "The answer was made by book, an output function that does not run in a replay."
    )


def test_a_function_that_gets_other_arguments_has_no_output():
    def make(*script: ModelResponse, **arguments: Any) -> Agent[None, str]:
        def book(order_id: str) -> str:
            """Book."""
            return f"booked {order_id}"

        return Agent(Scripted(*script), instructions="You book.", output_type=book, name="booker", **arguments)

    run = recorded_run(lambda: Play(make(says(call("final_result", {"order_id": "1"}, "f"))), "Book"))
    other = Saying(says(call("final_result", {"order_id": "2"}, "f")))

    result = replayed_by(run, OwnAgent(agent=make(capabilities=[other])))

    assert (result.verdict, result.divergence.path) == ("diverged", "response")
    assert result.observations.output is None


def test_the_team_s_own_run_is_as_before_when_the_replay_is_over(run: Run):
    replayed_by(run, Desk().own)
    desk = Desk(BOTH, says("Done."))

    asyncio.run(desk.agent.run("Buy"))

    assert desk.ran == {"stock_of": 1, "order": 1}
