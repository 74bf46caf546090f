"""Agents that go rarer ways, unchanged: their code gives the recorded run, on the server and on one's own machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, SkipToolValidation
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved

from tests.agents.own_agents import observed_by, own, place, recorded_run, replayed_by
from tests.recorder.rare_agents import (
    held_back_and_to_be_tried_again,
    held_back_by_its_tool_and_approved_while_it_runs,
    held_back_by_its_tool_and_denied_while_it_runs,
    history_that_ends_at_a_prompt,
    image_as_output,
    image_where_a_text_would_do,
    one_to_approve_beside_one_put_off,
    put_off_beside_one_to_approve,
    two_held_back_and_decided_otherwise,
)
from tests.recorder.scenarios import Play, Scripted, call, says

SAME = ("reproduced", None, None)


class Order(BaseModel):
    number: int


def asking(*calls: Any, **arguments: Any) -> Agent[None, Any]:
    return Agent(Scripted(says(*(calls or (call("look", {"x": 1}, "1"),))), says("Done.")), name="agent", **arguments)


def tool_that_checks_by_itself(*, is_fixed: bool = False) -> Play:
    agent = asking()

    @agent.tool_plain
    def look(x: int) -> str:
        """Look."""
        return "found" if is_fixed else str(Order.model_validate({}))

    return Play(agent, "Go")


def approved_with_other_arguments(*, times: int = 10) -> Play:
    agent: Agent[None, Any] = Agent(Scripted(says("Done.")), name="agent", output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(x: int) -> int:
        """Pay."""
        return x * times

    history: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("Go")]),
        ModelResponse(parts=[call("pay", {"x": 2}, "1")]),
    ]
    approved = DeferredToolResults(approvals={"1": ToolApproved(override_args={"x": 7})})
    return Play(agent, None, message_history=history, deferred_tool_results=approved)


def approved_with_other_arguments_while_it_runs(*, times: int = 10) -> Play:
    def approve(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(
            approvals={c.tool_call_id: ToolApproved(override_args={"x": 7}) for c in requests.approvals}
        )

    agent = asking(call("pay", {"x": 2}, "1"), capabilities=[HandleDeferredToolCalls(approve)])

    @agent.tool_plain(requires_approval=True)
    def pay(x: int) -> int:
        """Pay."""
        return x * times

    return Play(agent, "Go")


class Skips(AbstractCapability[Any]):
    async def before_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        raise SkipToolValidation({"x": 5})


def hook_with_arguments_of_its_own(*, more: int = 2) -> Play:
    agent = asking(call("look", {"x": "bad"}, "1"), capabilities=[Skips()])

    @agent.tool_plain
    def look(x: int) -> int:
        """Look."""
        return x + more

    return Play(agent, "Go")


def tool_that_answers_bytes(*, content: bytes = b"\xff\x00ab") -> Play:
    return tool_that_answers_anything(answer=content)


class Item(BaseModel):
    price_in_cents: int = Field(3, alias="priceInCents")


def tool_that_answers_fields_with_aliases(*, price: int = 3) -> Play:
    return tool_that_answers_anything(answer=Item(priceInCents=price))


def tool_that_answers_anything(*, answer: Any = range(3)) -> Play:
    """Such as what JSON does not know."""
    agent = asking()

    @agent.tool_plain
    def look(x: int) -> Any:
        """Look."""
        return answer

    return Play(agent, "Go")


def tool_that_answers_half_a_sign(*, answer: str = "cut off \ud83d") -> Play:
    return tool_that_answers_anything(answer=[answer])


def tool_that_answers_under_no_key(*, key: str | None = None) -> Play:
    return tool_that_answers_anything(answer={key: {"a": [{key: "b"}]}})


def tool_that_is_answered_from_outside_while_it_runs(*, answer: str = "outside") -> Play:
    def give(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(calls={c.tool_call_id: answer for c in requests.calls})

    agent = asking(capabilities=[HandleDeferredToolCalls(give)])

    @agent.tool_plain
    def look(x: int) -> Any:
        """Look."""
        raise CallDeferred

    return Play(agent, "Go")


def tool_that_asks_for_approval(*, reason: str | None = "over 100") -> Play:
    agent = asking(output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def look(x: int) -> str:
        """Look."""
        raise ApprovalRequired(metadata={"reason": reason} if reason else None)

    return Play(agent, "Go", output_type=[str, DeferredToolRequests])


def tool_that_asks_for_approval_without_a_reason(*, reason: str | None = None) -> Play:
    return tool_that_asks_for_approval(reason=reason)


CHANGES: dict[Callable[..., Play], dict[str, Any]] = {
    tool_that_checks_by_itself: {"is_fixed": True},
    approved_with_other_arguments: {"times": 11},
    approved_with_other_arguments_while_it_runs: {"times": 11},
    hook_with_arguments_of_its_own: {"more": 3},
    tool_that_answers_fields_with_aliases: {"price": 4},
    tool_that_answers_anything: {"answer": range(4)},
    tool_that_answers_bytes: {"content": b"\xff\x00ac"},
    tool_that_answers_half_a_sign: {"answer": "cut \ud83d"},
    tool_that_answers_under_no_key: {"key": "null"},
    tool_that_asks_for_approval: {"reason": None},
    tool_that_asks_for_approval_without_a_reason: {"reason": "over 100"},
    held_back_by_its_tool_and_approved_while_it_runs: {"paid": "billed"},
    held_back_by_its_tool_and_denied_while_it_runs: {"above": 1},
    tool_that_is_answered_from_outside_while_it_runs: {"answer": "inside"},
}
each_agent = pytest.mark.parametrize("make", CHANGES, ids=lambda make: make.__name__)


@each_agent
def test_the_unchanged_agent_gives_the_recorded_run(make: Callable[..., Play]):
    run = recorded_run(make)

    assert place(replayed_by(run, own(make()))) == SAME
    assert place(replayed_by(run, own(make()), runs_tools=True)) == SAME
    assert place(observed_by(run, make())) == SAME
    assert place(observed_by(run, make(), tools="run")) == SAME


@pytest.mark.parametrize(
    "make",
    [
        put_off_beside_one_to_approve,
        two_held_back_and_decided_otherwise,
        held_back_and_to_be_tried_again,
        one_to_approve_beside_one_put_off,
        history_that_ends_at_a_prompt,
        image_as_output,
        image_where_a_text_would_do,
    ],
)
def test_what_replays_from_the_recording_does_so_with_its_own_code(make: Callable[[], Play]):
    run = recorded_run(make)

    assert place(replayed_by(run, own(make()), runs_tools=True)) == SAME
    assert place(observed_by(run, make(), tools="run")) == SAME
    assert place(replayed_by(run, own(make()))) == SAME
    assert place(observed_by(run, make())) == SAME


@each_agent
def test_a_change_is_found_where_the_tool_runs(make: Callable[..., Play]):
    run = recorded_run(make)
    step = next(step.index for step in run.steps if step.kind == "tool")

    with_code = replayed_by(run, own(make(**CHANGES[make])), runs_tools=True)
    on_own_machine = observed_by(run, make(**CHANGES[make]), tools="run")

    assert place(with_code)[0] == place(on_own_machine)[0] == "diverged"
    assert place(on_own_machine)[1] == step
    assert place(with_code)[1] in (step, step + 1)  # what comes from outside is seen where the model is told
