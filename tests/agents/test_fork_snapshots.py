"""Forks of runs whose recorder took snapshots: the first difference is the change, not a snapshot around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.fork.order import read_course
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.agreement import produced
from sessions_app.core.run import Run, Step, ToolCall, answered
from tests.agents.forking import forked
from tests.agents.own_agents import fork_made_by, own, place, recorded_run, replayed_by
from tests.agents.test_code_fork_tools import order_of
from tests.agents.test_code_tools_run import cancelled, desk
from tests.recorder.local_server import Answer, local_server
from tests.recorder.scenarios import Play, Scripted, call, says

STATE = {"n": 1}
KINDS = ["model", "other", "tool", "other", "model", "other", "tool", "other", "model"]


ANOTHER = "recorded_for_another_request"


@pytest.fixture(scope="module")
def run() -> Run:
    """1 model, 3 lookup_order, 5 model, 7 cancel_order, 9 model; a snapshot behind each."""
    found = recorded_run(cancelled, state=lambda: STATE, snapshot_every=1)
    assert [step.kind for step in found.steps][: len(KINDS)] == KINDS
    return found


GONE = {"kind": "tool_result", "step": 3, "value": "Order gone"}
REFUSED = {"kind": "tool_result", "step": 7, "value": "Not eligible."}
ELSE = {"kind": "model_answer", "step": 5, "value": {"text": "One moment."}}

CASES = [(3, GONE, "result"), (7, REFUSED, "result"), (5, REFUSED, "result"), (5, ELSE, None), (1, ELSE, None)]


@pytest.mark.parametrize(("at", "change", "path"), CASES)
@pytest.mark.parametrize("of_code", [False, True], ids=["rebuilt", "own code"])
def test_the_first_difference_of_a_fork_is_its_change(
    run: Run, at: int, change: JsonObject, path: str | None, of_code: bool
):
    if of_code:
        result, made = fork_made_by(run, own(desk()), order_of(at, change, tools={}, on_difference="play_on"))
    else:
        result, made = forked(run, at, change, on_difference="play_on")

    assert made is not None
    assert place(result)[:2] == ("diverged", change["step"])
    assert path in (None, place(result)[2])
    assert [step.kind for step in made.steps][: change["step"]] == KINDS[: change["step"]]
    assert made.steps[change["step"] - 1].source == "by_hand"


def labels(made: Run | None) -> list[tuple[str, str]]:
    assert made is not None
    return [(step.kind, step.source) for step in made.steps]


def rebuilt_fork(run: Run) -> Run | None:
    change = {"kind": "instructions", "value": "NEVER cancel anything."}
    made: Run | None = forked(run, 5, change, on_difference="play_on")[1]
    return made


def code_replay(run: Run) -> Run | None:
    result = replayed_by(run, own(desk(prompt="NEVER cancel anything.")), on_difference="play_on")
    assert result.observations is not None
    return produced(run, result, result.observations, run_id="again")[1]


@pytest.mark.parametrize(("make", "first"), [(rebuilt_fork, 5), (code_replay, 1)], ids=["fork", "code replay"])
def test_snapshots_say_what_the_answer_before_them_says(run: Run, make: Callable[[Run], Run | None], first: int):
    """Carried over, they go with a recorded answer, or with one that was given to another request."""
    made = labels(make(run))

    assert [source for _, source in made] == ["recorded"] * (first - 1) + [ANOTHER] * (len(made) - first + 1)
    assert [kind for kind, _ in made][: len(KINDS)] == KINDS


def test_a_snapshot_of_the_code_that_ran_says_so(run: Run):
    """Control: where tools are frozen the recorded states are carried over."""
    code = replace(own(desk()), deps_of_state=lambda state: None, state_of_deps=lambda deps: STATE)

    def snapshots(runs_tools: bool) -> set[str]:
        result = replayed_by(run, code, runs_tools=runs_tools)
        assert result.observations is not None
        _, made = produced(run, result, result.observations, run_id="again")
        return {source for kind, source in labels(made) if kind == "other"}

    assert snapshots(runs_tools=True) == {"own_code"}
    assert snapshots(runs_tools=False) == {"recorded"}


@pytest.mark.parametrize(("value", "source"), [(2, "by_hand"), (1, "recorded")])
def test_snapshots_of_a_state_that_was_never_recorded_are_of_the_change(run: Run, value: int, source: str):
    """Control: a change to what was recorded leaves the recorded snapshots."""
    change = {"kind": "state", "step": 5, "patch": [{"op": "add", "path": "/n", "value": value}]}

    _, made = forked(run, 5, change)

    assert made is not None
    sources = [(step.index, step.source) for step in made.steps if step.kind == "other"]
    assert sources == [(2, "recorded"), (4, "recorded"), *((index, source) for index, _ in sources[2:])]
    assert len(sources) > 3
    assert {step.source for step in made.steps if step.kind != "other"} == {"recorded"}


@pytest.mark.parametrize("of_code", [False, True], ids=["rebuilt", "own code"])
def test_a_fork_that_stops_at_its_model_names_the_answer_that_was_recorded_there(run: Run, of_code: bool):
    failed = {"kind": "tool_result", "step": 7, "error": {"type": "Timeout", "message": "late"}}
    if of_code:
        result, _ = fork_made_by(run, own(desk()), order_of(7, failed, tools={}))
    else:
        result, _ = forked(run, 7, failed)

    then = answered(run.steps[8])
    assert then is not None
    assert place(result)[::2] == ("unknown_from_step", "response")
    assert result.divergence is not None
    assert result.divergence.recorded == then.parsed


@pytest.mark.parametrize(("at", "change"), [(at, change) for at, change, _ in CASES if change is not ELSE])
@pytest.mark.parametrize("of_code", [False, True], ids=["rebuilt", "own code"])
def test_a_fork_stops_at_the_number_of_the_step_that_it_is(run: Run, at: int, change: JsonObject, of_code: bool):
    """Snapshots before the change are steps of the fork as well."""
    if of_code:
        result, made = fork_made_by(run, own(desk()), order_of(at, change, tools={}))
    else:
        result, made = forked(run, at, change)

    assert made is not None
    assert result.stopped is not None
    stopped = made.steps[result.stopped["step"] - 1 :]
    assert [(step.kind, step.source) for step in stopped] == [("model", "unknown")]


@pytest.mark.parametrize("of_code", [False, True], ids=["rebuilt", "own code"])
def test_a_rule_at_a_step_counts_snapshots(run: Run, of_code: bool):
    rule = {"kind": "rule", "when": "step >= 9", "answer": {"text": "By rule."}}
    if of_code:
        _, made = fork_made_by(run, own(desk()), order_of(3, rule, tools={}))
    else:
        _, made = forked(run, 3, rule)

    assert labels(made)[8] == ("model", "rule")


# --- where a fork stops, in its own count


def three_lookups(*script: Any) -> Play:
    agent: Agent[None, str] = Agent(Scripted(*script), name="desk")

    @agent.tool_plain
    def lookup(number: int) -> int:
        """Look one up."""
        return number

    return Play(agent, "Go")


def looked_up(every: int) -> Run:
    script = (
        says(call("lookup", {"number": 1}, "a")),
        says(call("lookup", {"number": 2}, "b"), call("lookup", {"number": 3}, "c")),
        says(call("lookup", {"number": 4}, "d")),
        says("Done."),
    )
    return recorded_run(lambda: three_lookups(*script), state=lambda: STATE, snapshot_every=every)


HOW = {"rebuilt": None, "frozen": {}, "tools run": {"run": True}}


@pytest.mark.parametrize("every", [1, 2, 3, 5])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("position", range(4))
def test_a_fork_stops_at_the_step_that_its_run_ends_with(every: int, how: str, position: int):
    run = looked_up(every)
    at = [step.index for step, _ in run.tool_calls][position]
    change = {"kind": "tool_result", "step": at, "value": 99}
    if how == "rebuilt":
        result, made = forked(run, at, change)
    else:
        result, made = fork_made_by(run, own(three_lookups()), order_of(at, change, tools=HOW[how]))

    assert made is not None
    assert result.stopped is not None
    assert (result.stopped["kind"], made.steps[-1].source) == ("model", "unknown")
    assert (result.stopped["step"], result.divergence.step) == (len(made.steps), len(made.steps))


@pytest.mark.parametrize("every", [1, 2, 3, 5])
@pytest.mark.parametrize("how", HOW)
def test_a_fork_that_goes_step_by_step_counts_as_its_run_does(every: int, how: str):
    run = looked_up(every)
    at = [step.index for step, _ in run.tool_calls][1]
    change, seen, passed = {"kind": "tool_result", "step": at, "value": 99}, [], 0
    while True:
        course = {"passed": passed, "is_stepping": True}
        if how == "rebuilt":
            result, made = forked(run, at, change, course=course)
        else:
            result, made = fork_made_by(
                run, own(three_lookups()), order_of(at, change, tools=HOW[how]), read_course(course)
            )
        assert made is not None
        assert result.stopped is not None
        if result.stopped["why"] == "unknown":
            break
        passed = result.stopped["at"]
        waits = [step.index for step in made.steps if step.source == "unknown"]
        seen.append((result.stopped["step"], waits))

    assert all(step in waits for step, waits in seen), seen
    assert max(step for step, _ in seen) > at


@dataclass(frozen=True)
class Shop:
    """Two tools that were called at once, each of which sent two requests; recorded, and again."""

    run: Run
    code: OwnAgent


def parallel_shop() -> Shop:
    with local_server() as shop:
        shop.answer("/first", Answer(b"1"), Answer(b"2"))
        shop.answer("/second", Answer(b"3"), Answer(b"4"))

        def make(*script: Any) -> Play:
            agent: Agent[None, str] = Agent(Scripted(*script), name="shop")

            async def ask(place: str) -> str:
                async with httpx.AsyncClient() as client:
                    await client.get(f"{shop.url}/{place}")
                    await asyncio.sleep(0.05)
                    return (await client.get(f"{shop.url}/{place}")).text

            agent.tool_plain(ask)
            return Play(agent, "Go")

        both = says(call("ask", {"place": "first"}, "a"), call("ask", {"place": "second"}, "b"))
        run = recorded_run(lambda: make(both, says("Done.")), http=True, state=lambda: STATE, snapshot_every=1)
    code = replace(own(make()), deps_of_state=lambda state: None, state_of_deps=lambda deps: STATE)
    assert sum(step.name.startswith("HTTP GET") for step in run.steps) == 2
    return Shop(run, code)


def test_what_ran_inside_of_parallel_tools_comes_once_and_loses_no_snapshot():
    """The requests of the first call lie behind the second call."""
    shop = parallel_shop()
    patch = [{"op": "add", "path": "/m", "value": 1}]
    change = {"kind": "state", "step": 1, "patch": patch}

    result, made = fork_made_by(shop.run, shop.code, order_of(1, change))

    assert made is not None
    assert [(step.kind, step.name) for step in made.steps] == [(step.kind, step.name) for step in shop.run.steps]
    assert place(result) == ("reproduced", None, None)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("position", [0, 1])
def test_what_ran_inside_of_a_tool_counts_where_a_fork_stops(how: str, position: int):
    shop = parallel_shop()
    at = [step.index for step, _ in shop.run.tool_calls][position]
    change = {"kind": "tool_result", "step": at, "value": "99"}
    if how == "rebuilt":
        result, made = forked(shop.run, at, change)
    else:
        result, made = fork_made_by(shop.run, shop.code, order_of(at, change, tools=HOW[how]))

    assert made is not None
    assert result.stopped is not None
    assert (result.stopped["step"], made.steps[-1].source) == (len(made.steps), "unknown")


def test_a_call_that_stops_beside_one_that_runs_has_its_own_number():
    shop = parallel_shop()
    calls = [{"name": "ask", "arguments": {"place": place}} for place in ("first", "nowhere")]
    change = {"kind": "model_answer", "step": 1, "value": {"text": None, "tool_calls": calls}}

    result, made = fork_made_by(shop.run, shop.code, order_of(1, change))

    assert made is not None
    assert result.stopped is not None
    [waits] = [step for step in made.steps if step.source == "unknown" and asked_for(step) == "nowhere"]
    assert (result.stopped["step"], result.divergence.step if result.divergence else None) == (waits.index, waits.index)


def asked_for(step: Step) -> Any:
    return step.call.arguments.parsed["place"] if isinstance(step.call, ToolCall) and step.call.arguments else None


# --- an output that is asked for again


class Done(BaseModel):
    order: str
    fee: float = 0


class Question(BaseModel):
    question: str


def checked(fee: float = 1.5) -> Play:
    """An agent of two output types whose validator refuses the first output. `fee` is what it makes of the second."""
    script = (
        says(call("lookup", {"order": "O1"}, "a")),
        says(call("final_result_Done", {"order": "O1", "fee": -1.0}, "b")),
        says(call("final_result_Done", {"order": "O1", "fee": 1.5}, "c")),
    )
    agent: Agent[None, Done | Question] = Agent(Scripted(*script), name="desk", output_type=[Done, Question], retries=2)

    @agent.tool_plain
    def lookup(order: str) -> str:
        """Look one up."""
        return f"{order} was delivered."

    @agent.output_validator
    def positive(output: Done | Question) -> Done | Question:
        if isinstance(output, Done) and output.fee < 0:
            raise ModelRetry("The fee is below 0.")
        return output.model_copy(update={"fee": fee}) if isinstance(output, Done) else output

    return Play(agent, "Cancel O1")


UNCHANGED = {"kind": "clock", "value": 0}


@pytest.mark.parametrize("settings", [{}, {"state": lambda: STATE, "snapshot_every": 1}], ids=["plain", "snapshots"])
def test_a_fork_of_a_checked_output_that_changes_nothing_is_the_recording_again(settings: dict[str, Any]):
    """Its first request is not the one that decided how the output comes, and no tool answers what the check says."""
    run = recorded_run(checked, **settings)
    last = max(step.index for step in run.steps if step.kind != "other")

    for at in range(1, last + 1):
        rebuilt, _ = forked(run, at, UNCHANGED)
        of_code, _ = fork_made_by(run, own(checked()), order_of(at, UNCHANGED, tools={}))
        for result in (rebuilt, of_code):
            assert (result.verdict, result.divergence) == ("reproduced", None), at


def test_a_check_that_changes_the_output_today_differs_there():
    run = recorded_run(checked, state=lambda: STATE, snapshot_every=1)

    result, _ = fork_made_by(run, own(checked(fee=9.0)), order_of(1, UNCHANGED, tools={}))

    assert place(result) == ("diverged", len(run.steps), "output.fee")
