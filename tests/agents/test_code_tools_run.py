"""A team's own agent whose tools run: unchanged they give the recorded run, and a change shows where it begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import RunContext

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.fork.order import Breakpoint, Course, read_order
from sessions_app.core.fork.stops import Stops
from sessions_app.core.payload import Payload
from sessions_app.core.replay.agreement import produced
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.produce import produced_run
from sessions_app.core.run import Run, StateChange
from sessions_app.core.state import state_after
from tests.agents.own_agents import forked_by, observed_by, own, places_of_comparison, recorded_run, replayed_by
from tests.recorder.replaying import assert_same_run
from tests.recorder.scenarios import SCENARIOS, Play, Scenario, Scripted, call, says, support_agent


def place(result: Result) -> tuple[str, int | None, str | None]:
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_unchanged_tools_give_the_recorded_run(scenario: Scenario):
    run = recorded_run(scenario.make)
    result = replayed_by(run, own(scenario.make()), runs_tools=True)

    assert (result.verdict, result.divergence, result.error) == ("reproduced", None, None)
    assert result.observations is not None
    assert_same_run(run, produced_run(run, result.observations, run_id="again"))


# --- the order desk: a cancellation that should not have happened


def desk(*script: Any, body: Callable[[str], str] | None = None, prompt: str = "You help customers.") -> Play:
    orders = {"ORD-5521": "delivered"}
    agent: Agent[None, str] = Agent(Scripted(*script), instructions=prompt, name="desk")

    @agent.tool_plain
    def lookup_order(order_id: str) -> dict[str, str]:
        """Find one order by its id."""
        return {"id": order_id, "status": orders[order_id]}

    @agent.tool_plain
    def cancel_order(order_id: str) -> str:
        """Cancel an order."""
        if body is not None:
            return body(orders[order_id])
        orders[order_id] = "cancelled"
        return f"Order {order_id} cancelled."

    return Play(agent, "Cancel it")


def cancelled() -> Play:
    return desk(
        says(call("lookup_order", {"order_id": "ORD-5521"}, "a")),
        says(call("cancel_order", {"order_id": "ORD-5521"}, "b")),
        says("I've cancelled order ORD-5521."),
    )


@pytest.fixture(scope="module")
def run() -> Run:
    """1 model, 2 lookup_order, 3 model, 4 cancel_order, 5 model."""
    return recorded_run(cancelled)


def refuses(status: str) -> str:
    return f"Not eligible: {status}."


def fails(status: str) -> str:
    raise ToolFailed(f"Not eligible: {status}.")


def asks_again(status: str) -> str:
    raise ModelRetry(f"Not eligible: {status}.")


def crashes(status: str) -> str:
    raise RuntimeError(status)


def test_the_tool_runs_and_says_so(run: Run):
    result = replayed_by(run, own(desk()), runs_tools=True)

    assert place(result) == ("reproduced", None, None)
    assert result.facts["sources"] == {"recorded": 3, "own_code": 2}


def test_each_tool_runs_at_its_recorded_time_and_counts_as_a_step(run: Run):
    progress: list[tuple[int, int]] = []
    began: list[datetime] = []

    def body(status: str) -> str:
        began.append(datetime.now(UTC))
        return "Order ORD-5521 cancelled."

    replayed_by(run, own(desk(body=body)), runs_tools=True, progress=progress)

    assert began == [run.steps[3].started_at]
    assert progress == [(done, 5) for done in range(1, 6)]


@pytest.mark.parametrize("body", [refuses, fails, asks_again, crashes])
def test_a_fix_in_the_tool_s_body_takes_effect_at_its_step(run: Run, body: Callable[[str], str]):
    fixed = desk(body=body)

    result = replayed_by(run, own(fixed), runs_tools=True)
    frozen = replayed_by(run, own(fixed))

    assert place(result) == ("diverged", 4, "result")
    act = result.facts["own_code"][0]
    assert act["recorded"] == "Order ORD-5521 cancelled."
    assert "delivered" in act["now"]
    assert act.get("has_failed", False) is (body is crashes)
    assert place(frozen) == ("reproduced", None, None)  # the body did not run, which the report says


def test_behind_the_fix_the_model_is_asked_something_else(run: Run):
    stops = replayed_by(run, own(desk(body=refuses)), runs_tools=True)
    plays_on = replayed_by(run, own(desk(body=refuses)), runs_tools=True, on_difference="play_on")

    assert stops.facts["stopped_before"] == 5
    assert stops.observations is not None
    assert stops.observations.output is None
    assert place(plays_on) == ("diverged", 4, "result")
    assert plays_on.observations is not None
    assert plays_on.observations.output.value == "I've cancelled order ORD-5521."
    made = produced_run(run, plays_on.observations, run_id="again")
    sources = ["recorded", "own_code", "recorded", "own_code", "recorded_for_another_request"]
    assert [step.source for step in made.steps] == sources


def test_another_prompt_differs_from_the_first_request_on(run: Run):
    never = desk(prompt="NEVER cancel anything.")

    stops = replayed_by(run, own(never))
    plays_on = replayed_by(run, own(never), on_difference="play_on")

    assert place(stops) == place(plays_on) == ("diverged", 1, "messages[0].instructions")
    assert set(plays_on.facts["sources"]) == {"recorded_for_another_request"}


def test_a_difference_inside_an_answer_is_named(run: Run):
    def make(status: str) -> Play:
        play = cancelled() if status == "delivered" else desk()
        tool = play.agent._function_toolset.tools["lookup_order"]
        tool.function_schema.function = lambda order_id: {"id": order_id, "status": status}
        return play

    recorded = recorded_run(lambda: make("delivered"))

    assert place(replayed_by(recorded, own(make("shipped")), runs_tools=True)) == ("diverged", 2, "result.status")


def test_a_function_that_makes_the_output_runs_too():
    def make(words: str, *script: Any) -> Play:
        def book(order_id: str) -> str:
            """Book."""
            return f"{words} {order_id}"

        return Play(Agent(Scripted(*script), output_type=book, name="booker"), "Book")

    then = recorded_run(lambda: make("booked", says(call("final_result", {"order_id": "1"}, "f"))))

    assert place(replayed_by(then, own(make("booked")), runs_tools=True)) == ("reproduced", None, None)
    assert place(replayed_by(then, own(make("refused")), runs_tools=True))[0] == "diverged"


def delegating(*script: Any) -> Play:
    """An agent whose tool runs another one."""
    outer: Agent[None, str] = Agent(Scripted(*script), name="outer")

    @outer.tool_plain
    async def delegate(task: str) -> str:
        """Delegate."""
        return (await Agent(Scripted(says("Inner.")), name="inner").run(task)).output

    return Play(outer, "Go")


def test_an_agent_inside_of_a_tool_has_no_answer():
    then = recorded_run(lambda: delegating(says(call("delegate", {"task": "t"}, "d")), says("Done.")))
    result = replayed_by(then, own(delegating()), runs_tools=True)

    assert place(result)[:2] == ("fixture_missing", 2)
    assert result.facts["asked_for"]["tool"] == "the model of agent 'inner'"
    assert (result.facts["agents_not_played"], place(result)[2]) == (["inner"], "response")


def test_an_agent_that_no_tool_ran_then_is_not_one_that_is_merely_not_played():
    agent: Agent[None, str] = Agent(Scripted(says(call("delegate", {"task": "t"}, "d")), says("Done.")), name="outer")
    agent.tool_plain(name="delegate", description="Delegate.")(plain_delegate)
    then = recorded_run(lambda: Play(agent, "Go"))
    result = replayed_by(then, own(delegating()), runs_tools=True)

    assert place(result)[:2] == ("fixture_missing", 2)
    assert "agents_not_played" not in result.facts


async def plain_delegate(task: str) -> str:
    return "Inner."


def test_a_tool_that_runs_no_agent_any_more_is_a_difference_at_its_step():
    def make(*script: Any) -> Play:
        agent: Agent[None, str] = Agent(Scripted(*script), name="outer")

        @agent.tool_plain
        async def delegate(task: str) -> str:
            """Delegate."""
            return "Inner."

        return Play(agent, "Go")

    then = recorded_run(lambda: delegating(says(call("delegate", {"task": "t"}, "d")), says("Done.")))
    result = replayed_by(then, own(make()), runs_tools=True)

    assert place(result) == ("diverged", 2, "agents_inside")
    assert result.divergence is not None
    assert (result.divergence.recorded, result.divergence.replayed) == (["inner"], [])
    script = says(call("delegate", {"task": "t"}, "d")), says("Done.")
    assert place(observed_by(then, make(*script), tools="run")) == ("diverged", 2, "agents_inside")
    assert places_of_comparison(then, own(make()), make(*script)) == [(2, "agents_inside")] * 2
    assert place(replayed_by(then, own(make()))) == ("reproduced", None, None)


def test_a_message_that_a_tool_adds_is_added_again():
    def make(*script: Any, words: str = "note!") -> Play:
        agent: Agent[None, str] = Agent(Scripted(*script), name="noting")

        @agent.tool
        def note(ctx: RunContext[None]) -> str:
            """Note."""
            ctx.enqueue(words)
            return "r"

        return Play(agent, "Go")

    then = recorded_run(lambda: make(says(call("note", {}, "n")), says("Done.")))

    assert place(replayed_by(then, own(make()), runs_tools=True)) == ("reproduced", None, None)
    assert place(replayed_by(then, own(make(words="other")), runs_tools=True))[:2] == ("diverged", 3)


# --- state


@dataclass
class Orders:
    """What the tools of the desk work on."""

    status: dict[str, str]


def stateful(*script: Any, becomes: str = "cancelled") -> Agent[Orders, str]:
    agent: Agent[Orders, str] = Agent(Scripted(*script), deps_type=Orders, name="stateful")

    @agent.tool
    def cancel_order(ctx: RunContext[Orders], order_id: str) -> str:
        """Cancel an order."""
        ctx.deps.status[order_id] = becomes
        return "Done."

    return agent


def of_state(state: Any) -> Orders:
    return Orders(status=dict(state["status"]))


def to_state(deps: Orders) -> Any:
    return {"status": deps.status}


@pytest.fixture(scope="module")
def with_state() -> Run:
    """1 model, 2 cancel_order, 3 model; the order was delivered."""
    script = says(call("cancel_order", {"order_id": "A"}, "a")), says("Cancelled.")
    run = recorded_run(lambda: Play(stateful(*script), "Cancel A", deps=Orders(status={"A": "delivered"})))
    change = StateChange(after=({"op": "replace", "path": "/status/A", "value": "cancelled"},))
    steps = tuple(replace(step, state=change) if step.index == 2 else step for step in run.steps)
    return replace(run, initial_state=Payload.of_json({"status": {"A": "delivered"}}), steps=steps)


def registered(**changes: Any) -> OwnAgent:
    made = OwnAgent(agent=stateful(), deps_of_state=of_state, state_of_deps=to_state)
    return replace(made, **changes)


def test_the_state_is_given_to_the_code_and_compared_after_each_step(with_state: Run):
    result = replayed_by(with_state, registered(), runs_tools=True)

    assert place(result) == ("reproduced", None, None)
    assert result.facts["proof"]["state"] == {"state": "proven", "reason": None}
    assert result.observations is not None
    made = produced_run(with_state, result.observations, run_id="again")
    assert compare_runs(with_state, made).identical
    assert state_after(made, 3) == {"status": {"A": "cancelled"}}


def test_another_state_is_found_at_its_step_though_every_answer_is_the_same(with_state: Run):
    result = replayed_by(with_state, registered(agent=stateful(becomes="refunded")), runs_tools=True)

    assert result.observations is not None
    result, made = produced(with_state, result, result.observations, run_id="again")
    assert place(result) == ("diverged", 2, "state.status.A")
    assert (result.divergence.recorded, result.divergence.replayed) == ("cancelled", "refunded")
    assert result.facts["proof"]["state"]["state"] == "not_proven"
    assert state_after(made, 3) == {"status": {"A": "refunded"}}


def test_without_a_way_to_read_it_the_state_is_not_known(with_state: Run):
    result = replayed_by(with_state, registered(state_of_deps=None), runs_tools=True)

    assert result.facts["proof"]["state"]["state"] == "not_comparable"
    assert result.observations is not None
    assert produced_run(with_state, result.observations, run_id="again").initial_state is None


def test_frozen_tools_carry_the_recorded_state_over(with_state: Run):
    result = replayed_by(with_state, registered(state_of_deps=None))

    assert place(result) == ("reproduced", None, None)
    assert result.facts["proof"]["state"]["reason"] == "carried over from the recording, not run"
    assert result.observations is not None
    assert state_after(produced_run(with_state, result.observations, run_id="again"), 3) == {
        "status": {"A": "cancelled"}
    }


def test_a_fork_of_the_code_begins_with_the_state_that_is_wanted(with_state: Run):
    seen: list[Any] = []

    def noting(deps: Orders) -> Any:
        seen.append(dict(deps.status))
        return to_state(deps)

    patch = [{"op": "replace", "path": "/status/A", "value": "shipped"}]
    order = read_order({"at_step": 1, "agent": "desk", "changes": [{"kind": "state", "step": 1, "patch": patch}]})

    made = forked_by(with_state, registered(state_of_deps=noting), order)
    refused = forked_by(with_state, registered(deps_of_state=None), order)

    assert made.verdict in ("reproduced", "diverged")
    assert seen[0] == {"A": "shipped"}
    assert (refused.verdict, (refused.error or "").partition(" (")[0]) == (
        "could_not_run",
        "The registered agent does not say how its dependencies are made of a state",
    )


# --- what a tool gives along


def giving(content: Any, metadata: Any) -> Play:
    agent = support_agent(says(call("look", {}, "a")), says("Fine."))

    @agent.tool_plain
    def look() -> ToolReturn:
        return ToolReturn(return_value={"a": 1}, content=content, metadata=metadata)

    return Play(agent, "Where?")


def giving_alone(value: Any) -> Play:
    agent = support_agent(says(call("look", {}, "a")), says("Fine."))

    @agent.tool_plain
    def look() -> Any:
        return value

    return Play(agent, "Where?")


@pytest.mark.parametrize(("then", "now"), [(None, ""), (None, "null"), (None, {}), ('{"a":1}', {"a": 1}), ([1], "[1]")])
def test_a_value_and_the_text_that_spells_it_are_two_answers(then: Any, now: Any):
    run = recorded_run(partial(giving_alone, then))

    assert place(replayed_by(run, own(giving_alone(then)), runs_tools=True)) == ("reproduced", None, None)
    assert place(replayed_by(run, own(giving_alone(now)), runs_tools=True)) == ("diverged", 2, "result")
    assert place(observed_by(run, giving_alone(then), tools="run")) == ("reproduced", None, None)
    assert place(observed_by(run, giving_alone(now), tools="run")) == ("diverged", 2, "result")


def test_bytes_that_a_tool_gives_are_told_as_messages_hold_them():
    run = recorded_run(partial(giving_alone, b"\xff\x00"))

    result = observed_by(run, giving_alone(b"\xff\x01"), tools="run")

    assert place(result) == ("diverged", 2, "result")
    (act,) = result.facts["own_code"]
    assert (act["recorded"], act["now"]) == ("_wA=", "_wE=")


ALONG = (["See this."], {"m": 1})


@pytest.mark.parametrize(
    ("then", "now", "path"),
    [
        (ALONG, ALONG, None),
        (ALONG, (["See that."], {"m": 1}), "content[0]"),
        (ALONG, ("See this.", {"m": 1}), "content"),
        (ALONG, (None, {"m": 1}), "content"),
        (ALONG, (["See this."], {"m": 2}), "metadata.m"),
        (ALONG, (["See this."], None), "metadata"),
        ((None, None), (["See this."], None), "content"),
        ((None, None), (None, {"m": 1}), "metadata"),
    ],
)
def test_what_a_tool_gives_along_with_its_result_is_compared_at_its_step(then: Any, now: Any, path: str | None):
    run = recorded_run(partial(giving, *then))
    expected = ("reproduced", None, None) if path is None else ("diverged", 2, path)

    assert place(replayed_by(run, own(giving(*now)), runs_tools=True)) == expected
    assert place(observed_by(run, giving(*now), tools="run")) == expected
    assert places_of_comparison(run, own(giving(*now)), giving(*now)) == [path and (2, path)] * 2


def fussy(least: int) -> Play:
    agent = support_agent(says(call("take", {"n": 1}, "a")), says(call("take", {"n": 7}, "b")), says("Fine."))

    @agent.tool_plain
    def take(n: int) -> str:
        if n < least:
            raise ModelRetry("n is too small")
        return f"{n} taken"

    return Play(agent, "Take some.")


def test_a_tool_that_answers_now_where_it_asked_for_another_try_differs_at_its_result():
    run = recorded_run(lambda: fussy(5))

    assert place(replayed_by(run, own(fussy(0)), runs_tools=True)) == ("diverged", 2, "result")
    assert place(observed_by(run, fussy(0), tools="run")) == ("diverged", 2, "result")
    assert places_of_comparison(run, own(fussy(0)), fussy(0)) == [(2, "result")] * 2


def failing(error: Callable[[str], Any]) -> Play:
    agent = support_agent(says(call("pay", {}, "a")), says("Fine."))

    @agent.tool_plain
    def pay() -> Any:
        return error("paid 5")

    return Play(agent, "Pay")


def as_failure(words: str) -> Any:
    raise ToolFailed(words)


@pytest.mark.parametrize(("then", "now"), [(str, as_failure), (as_failure, str)])
def test_the_same_words_as_an_answer_and_as_a_failure_differ_in_the_outcome(then: Any, now: Any):
    run = recorded_run(partial(failing, then))

    assert place(replayed_by(run, own(failing(then)), runs_tools=True)) == ("reproduced", None, None)
    assert place(replayed_by(run, own(failing(now)), runs_tools=True)) == ("diverged", 2, "outcome")


# --- stops


@pytest.mark.parametrize("point", [Breakpoint(tool="cancel_order"), Breakpoint(step=4)])
def test_a_replay_pauses_before_the_body_of_a_tool(run: Run, point: Breakpoint):
    ran: list[str] = []

    def body(status: str) -> str:
        ran.append(status)
        return "Order ORD-5521 cancelled."

    paused = replayed_by(run, own(desk(body=body)), runs_tools=True, stops=Stops((point,), Course()))
    assert ran == []
    assert paused.stopped is not None
    assert (paused.verdict, paused.stopped["step"], paused.stopped["name"]) == ("paused", 4, "cancel_order")
    assert paused.stopped["arguments"] == {"order_id": "ORD-5521"}

    passed = Stops((point,), Course(passed=int(paused.stopped["at"])))
    assert replayed_by(run, own(desk(body=body)), runs_tools=True, stops=passed).verdict == "reproduced"
    assert ran == ["delivered"]
