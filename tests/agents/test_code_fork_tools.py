"""Forks with the team's own agent whose tools run: what the fork says stands before what a tool says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests
from pydantic_ai import Agent, ToolOutput

from sessions_app.core.fork.order import Order, read_course, read_order
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run
from tests.agents.forking import IN_WORDS, answer_of, sources
from tests.agents.own_agents import fork_made_by, forked_by, own, place, recorded_run
from tests.agents.test_code_tools_http import one_tool
from tests.agents.test_code_tools_run import cancelled, delegating, desk
from tests.recorder.local_server import Answer, local_server
from tests.recorder.scenarios import Play, Scripted, call, says


@pytest.fixture(scope="module")
def run() -> Run:
    """1 model, 2 lookup_order, 3 model, 4 cancel_order, 5 model."""
    return recorded_run(cancelled)


def order_of(at: int, *changes: JsonObject, **more: Any) -> Order:
    order = {"at_step": at, "changes": list(changes), "agent": "desk", "tools": {"run": True}, **IN_WORDS, **more}
    return read_order(order)


def answers(step: int, **how: Any) -> JsonObject:
    return {"kind": "tool_result", "step": step, **how}


def noting(ran: list[str]) -> Callable[[str], str]:
    """The recorded tool, which says that it ran."""

    def body(status: str) -> str:
        ran.append(status)
        return "Order ORD-5521 cancelled."

    return body


FAILURE = {"type": "Timeout", "message": "late"}


@pytest.mark.parametrize(
    ("how", "said"),
    [({"value": "Not eligible."}, "Not eligible."), ({"error": FAILURE}, "Timeout: late")],
    ids=["value", "error"],
)
def test_a_changed_answer_is_given_and_its_tool_does_not_run(run: Run, how: JsonObject, said: str):
    ran: list[str] = []
    agent = own(desk(body=noting(ran)))

    result, made = fork_made_by(run, agent, order_of(4, answers(4, **how), on_difference="play_on"))

    assert place(result) == ("diverged", 4, "result")
    assert sources(made) == ["recorded", "own_code", "recorded", "by_hand", "recorded_for_another_request"]
    assert answer_of(made, 4) == said
    assert ran == []


def test_behind_a_changed_answer_nothing_knows_what_the_model_says(run: Run):
    result, made = fork_made_by(run, own(desk()), order_of(4, answers(4, value="Not eligible.")))

    assert (result.verdict, sources(made)[3]) == ("unknown_from_step", "by_hand")
    assert result.stopped is not None
    assert (result.stopped["kind"], result.stopped["step"]) == ("model", 5)


def test_other_calls_of_the_fork_run_their_tools(run: Run):
    ran: list[str] = []
    agent = own(desk(body=noting(ran)))

    result = forked_by(run, agent, order_of(2, answers(2, value={"id": "1"}), on_difference="play_on"))

    assert place(result) == ("diverged", 2, "result.id")
    assert ran == ["delivered"]


# --- what the tools of a fork send


@pytest.fixture(scope="module")
def asked_shop() -> tuple[Run, str]:
    """1 model, 2 ask and its exchange, model; the shop is gone."""
    with local_server() as shop:
        shop.answer("/stock", Answer(b"3"))
        play = one_tool(lambda: requests.get(f"{shop.url}/stock").text, says(call("ask", {}, "a")), says("Done."))
        return recorded_run(lambda: play, http=True), shop.url


def test_a_request_that_was_not_recorded_stops_the_fork_and_is_named(asked_shop: tuple[Run, str]):
    run, url = asked_shop
    agent = own(one_tool(lambda: requests.get(f"{url}/other").text))

    result, made = fork_made_by(run, agent, order_of(2))

    assert place(result) == ("unknown_from_step", 2, "http")
    assert result.divergence is not None
    assert (result.divergence.recorded, result.divergence.replayed) == ([f"GET {url}/stock"], f"GET {url}/other")
    assert result.facts["asked_for"]["http"]["url"] == f"{url}/other"
    assert result.stopped is not None
    assert [result.stopped[name] for name in ("step", "kind", "name", "why")] == [2, "tool", "ask", "unknown"]
    assert sources(made) == ["recorded", "unknown"]


def test_an_answer_by_hand_stands_in_the_place_of_the_tool_that_sent_it(asked_shop: tuple[Run, str]):
    run, url = asked_shop
    agent = own(one_tool(lambda: requests.get(f"{url}/other").text))
    stopped = forked_by(run, agent, order_of(2)).stopped
    assert stopped is not None
    course = read_course({"answers": [{"at": stopped["at"], "asked": stopped["asked"], "value": "5"}]})

    result, made = fork_made_by(run, agent, order_of(2, on_difference="play_on"), course)

    assert place(result) == ("diverged", 2, "result")
    assert (sources(made)[1], answer_of(made, 2)) == ("by_hand", "5")


def test_unchanged_requests_of_a_fork_are_answered(asked_shop: tuple[Run, str]):
    run, url = asked_shop

    result = forked_by(run, own(one_tool(lambda: requests.get(f"{url}/stock").text)), order_of(2))

    assert place(result) == ("reproduced", None, None)


def test_an_agent_inside_of_a_tool_stops_the_fork_at_the_call():
    then = recorded_run(lambda: delegating(says(call("delegate", {"task": "t"}, "d")), says("Done.")))
    result = forked_by(then, own(delegating()), order_of(2))

    assert place(result)[:2] == ("unknown_from_step", 2)
    assert result.stopped is not None
    assert result.stopped["name"] == "delegate"
    assert result.facts["asked_for"]["tool"] == "the model of agent 'inner'"


def test_a_function_that_makes_the_output_ends_the_fork_with_its_request():
    def make(url: str, *script: Any) -> Play:
        def book(order_id: str) -> str:
            """Book."""
            return requests.get(url).text

        return Play(Agent(Scripted(*script), output_type=book, name="booker"), "Book")

    with local_server() as shop:
        shop.answer("/stock", Answer(b"3"))
        url = f"{shop.url}/stock"
        then = recorded_run(lambda: make(url, says(call("final_result", {"order_id": "1"}, "f"))), http=True)

    result = forked_by(then, own(make(f"{url}/other")), order_of(1))

    assert place(result)[0::2] == ("fixture_missing", "http")
    assert result.facts["asked_for"]["http"]["url"] == f"{url}/other"


@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_sampling_asks_the_live_model_from_its_step_on(run: Run, at: int):
    """The code builds its past from the recorded answers, as a rebuilt agent has it."""
    asked: list[JsonObject] = []

    def live(question: JsonObject) -> JsonObject | None:
        asked.append(question)
        return {"response": {"kind": "response", "parts": [{"part_kind": "text", "content": "One moment."}]}}

    _, made = fork_made_by(run, own(desk()), order_of(at, tools={}, samples=1), ask=live)

    assert made is not None
    sources = [(step.index, step.source) for step in made.steps]
    assert sources == [*((index, "recorded") for index in range(1, at)), (at, "live")]
    assert [question["what"] for question in asked] == ["live"]


# --- breakpoints


@pytest.mark.parametrize("point", [{"tool": "cancel_order"}, {"step": 4}, {"when": 'tool = "cancel_order"'}])
def test_a_fork_pauses_before_the_body_of_a_tool_and_goes_on(run: Run, point: JsonObject):
    ran: list[str] = []
    agent, order = own(desk(body=noting(ran))), order_of(1, breakpoints=[point])

    result, made = fork_made_by(run, agent, order)
    assert result.stopped is not None
    assert [result.stopped[name] for name in ("step", "kind", "name", "why")] == [
        4,
        "tool",
        "cancel_order",
        "breakpoint",
    ]
    assert (result.verdict, sources(made)[-1], ran) == ("paused", "unknown", [])

    passed = read_course({"passed": result.stopped["at"]})
    assert fork_made_by(run, agent, order, passed)[0].verdict == "reproduced"
    assert ran == ["delivered"]


def test_an_answer_by_hand_at_a_breakpoint_stands_in_the_place_of_the_body(run: Run):
    ran: list[str] = []
    agent = own(desk(body=noting(ran)))
    order = order_of(1, breakpoints=[{"tool": "cancel_order"}], on_difference="play_on")
    stopped = forked_by(run, agent, order).stopped
    assert stopped is not None
    course = read_course(
        {"passed": stopped["at"], "answers": [{"at": stopped["at"], "asked": stopped["asked"], "value": "No."}]}
    )

    _, made = fork_made_by(run, agent, order, course)

    assert (answer_of(made, 4), ran) == ("No.", [])


def test_stepping_comes_to_the_body_of_each_tool(run: Run):
    stops = []
    course = read_course({"passed": 0, "is_stepping": True})
    while (stopped := fork_made_by(run, own(desk()), order_of(1), course)[0].stopped) is not None:
        stops.append((stopped["step"], stopped["kind"]))
        course = read_course({"passed": stopped["at"], "is_stepping": True})

    assert stops == [(1, "model"), (2, "tool"), (3, "model"), (4, "tool"), (5, "model")]


def test_an_output_tool_that_an_answer_for_another_request_calls_is_labelled_as_that_answer_is():
    """Control: the same fork without a change."""

    def make(*script: Any) -> Play:
        def three() -> int:
            return 3

        agent = Agent(Scripted(*script), output_type=ToolOutput(bool, name="done"), name="counter")
        agent.tool_plain(name="count")(three)
        return Play(agent, "Count")

    script = says(call("count", {}, "a")), says(call("done", {"response": True}, "b"))
    run = recorded_run(lambda: make(*script))

    def labels(*changes: JsonObject) -> list[str]:
        return sources(fork_made_by(run, own(make()), order_of(2, *changes, on_difference="play_on"))[1])

    assert labels(answers(2, value=4))[2:] == ["recorded_for_another_request"] * 2
    assert labels()[2:] == ["recorded"] * 2
