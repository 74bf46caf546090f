"""Tools beside each other of which one ends the run: which ends first is chance, and no difference."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai import Agent

from tests.agents.own_agents import observed_by, own, place, recorded_run, replayed_by
from tests.recorder.scenarios import Play, Scripted, call, says

MOMENT = 0.05


def two_tools(*, error_after: float = 0, answer_after: float = 0, fails: bool = True, answer: str = "found") -> Play:
    agent = Agent(Scripted(says(call("fail", {}, "1"), call("look", {}, "2")), says("Done.")), name="agent")

    @agent.tool_plain
    async def fail() -> str:
        """Fail."""
        await asyncio.sleep(error_after)
        if fails:
            raise ValueError("boom")
        return "no error"

    @agent.tool_plain
    async def look() -> str:
        """Look."""
        await asyncio.sleep(answer_after)
        return answer

    return Play(agent, "Go")


@pytest.mark.parametrize(("error_after", "answer_after"), [(0, MOMENT), (MOMENT, 0)], ids=["interrupted", "answered"])
def test_the_tool_that_was_first_then_is_first_again(error_after: float, answer_after: float):
    run = recorded_run(lambda: two_tools(error_after=error_after, answer_after=answer_after))
    outcomes = [call.outcome for _, call in run.tool_calls]
    assert outcomes == ["crashed", "interrupted" if answer_after else "success"]

    as_then = own(two_tools(error_after=error_after, answer_after=answer_after))
    other_way = own(two_tools(error_after=answer_after, answer_after=error_after))

    assert place(replayed_by(run, as_then, runs_tools=True)) == ("reproduced", None, None)
    assert place(replayed_by(run, other_way, runs_tools=True)) == ("reproduced", None, None)


def test_what_the_tools_do_otherwise_is_found_all_the_same():
    answered = recorded_run(lambda: two_tools(error_after=MOMENT))
    interrupted = recorded_run(lambda: two_tools(answer_after=MOMENT))

    no_error, other_answer = own(two_tools(fails=False)), own(two_tools(answer="other"))

    assert place(replayed_by(answered, no_error, runs_tools=True)) == ("diverged", 2, "result")
    assert place(replayed_by(answered, other_answer, runs_tools=True)) == ("diverged", 3, "result")
    assert place(replayed_by(interrupted, no_error, runs_tools=True)) == ("diverged", 2, "result")


# --- on a person's own machine -----------------------------------------------------------------


@pytest.mark.parametrize(("error_after", "answer_after"), [(0, MOMENT), (MOMENT, 0)], ids=["interrupted", "answered"])
def test_on_ones_own_machine_the_tool_that_was_first_then_is_first_again(error_after: float, answer_after: float):
    run = recorded_run(lambda: two_tools(error_after=error_after, answer_after=answer_after))

    as_then = two_tools(error_after=error_after, answer_after=answer_after)
    other_way = two_tools(error_after=answer_after, answer_after=error_after)

    assert place(observed_by(run, as_then, tools="run")) == ("reproduced", None, None)
    assert place(observed_by(run, other_way, tools="run")) == ("reproduced", None, None)


def test_on_ones_own_machine_what_the_tools_do_otherwise_is_found_all_the_same():
    answered = recorded_run(lambda: two_tools(error_after=MOMENT))
    interrupted = recorded_run(lambda: two_tools(answer_after=MOMENT))

    assert place(observed_by(answered, two_tools(fails=False), tools="run"))[:2] == ("diverged", 2)
    assert place(observed_by(answered, two_tools(answer="other"), tools="run")) == ("diverged", 3, "result")
    assert place(observed_by(interrupted, two_tools(fails=False), tools="run"))[:2] == ("diverged", 2)


def in_threads() -> Play:
    agent = Agent(Scripted(says(call("fail", {}, "1"), call("look", {}, "2")), says("Done.")), name="agent")

    @agent.tool_plain
    def fail() -> str:
        raise ValueError("boom")

    @agent.tool_plain
    def look() -> str:
        return "found"

    return Play(agent, "Go")


def test_tools_in_threads_come_to_the_same_on_ones_own_machine():
    """Whichever was first in each of these."""
    runs = [recorded_run(in_threads) for _ in range(6)]

    found = [place(observed_by(run, in_threads(), tools="run")) for run in runs]

    assert found == [("reproduced", None, None)] * len(runs)
