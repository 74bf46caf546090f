"""What today's code says, or decides, of a call is told at that call: on the server as on one's own machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied

from sessions_app.core.replay.observed import Result
from tests.agents.own_agents import observed_by, own, place, recorded_run, replayed_by
from tests.recorder.scenarios import Play, Scripted, call, says

SAME = ("reproduced", None, None)


class Count(BaseModel):
    number: int


def counting(*, words: str = "Too few.") -> Play:
    """A check of the output refuses the first one."""
    model = Scripted(says(call("final_result", {"number": 1}, "1")), says(call("final_result", {"number": 5}, "2")))
    agent = Agent(model, name="agent", output_type=Count, retries={"output": 3})

    @agent.output_validator
    def check(count: Count) -> Count:
        if count.number < 5:
            raise ModelRetry(words)
        return count

    return Play(agent, "Count.")


def removing(*, approved: tuple[str, ...] = ("1",), words: str = "No.") -> Play:
    """One of two calls is denied while the run goes on."""

    def decide(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        asked = [each.tool_call_id for each in requests.approvals]
        return DeferredToolResults(approvals={each: True if each in approved else ToolDenied(words) for each in asked})

    asks = says(call("remove", {"path": "a"}, "1"), call("remove", {"path": "b"}, "2"))
    agent = Agent(Scripted(asks, says("Done.")), name="agent", capabilities=[HandleDeferredToolCalls(decide)])

    @agent.tool_plain(requires_approval=True)
    def remove(path: str) -> str:
        """Remove."""
        return f"removed {path}"

    return Play(agent, "Remove both.")


def said_by(result: Result) -> tuple[Any, Any]:
    assert result.divergence is not None
    return result.divergence.recorded, result.divergence.replayed


@pytest.mark.parametrize("runs_tools", [False, True])
@pytest.mark.parametrize(
    ("agent", "step", "then", "now"),
    [(counting, 2, "Too few.", "Not enough."), (removing, 3, "No.", "Never.")],
    ids=["a check that refuses", "a denial"],
)
def test_other_words_of_code_are_told_at_the_call_that_they_are_of(
    agent: Callable[..., Any], step: int, then: str, now: str, runs_tools: bool
):
    run = recorded_run(agent)

    for result in (
        replayed_by(run, own(agent(words=now)), runs_tools=runs_tools),
        observed_by(run, agent(words=now), tools="run" if runs_tools else "frozen"),
    ):
        assert place(result) == ("diverged", step, "result")
        assert said_by(result) == (then, now)
    assert place(replayed_by(run, own(agent()), runs_tools=runs_tools)) == SAME


def test_a_call_that_is_no_longer_approved_comes_before_one_that_is_now():
    run, today = recorded_run(removing), removing(approved=("2",))

    frozen, running = (replayed_by(run, own(today), runs_tools=runs) for runs in (False, True))

    assert (place(frozen), said_by(frozen)) == (("diverged", 2, "outcome"), ("success", "not called"))
    assert (place(running), said_by(running)) == (("diverged", 2, "result"), ("removed a", "No."))
    assert place(observed_by(run, today)) == ("diverged", 2, "result")


def test_a_call_that_is_approved_now_beside_one_that_was_has_no_recorded_answer():
    run = recorded_run(removing)

    assert place(replayed_by(run, own(removing(approved=("1", "2"))))) == ("fixture_missing", 3, "outcome")
    assert place(replayed_by(run, own(removing(approved=())))) == ("diverged", 2, "result")
