"""Runs as Pydantic AI's own instrumentation tells of them: what is said of each, its replay keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, ToolOutput

from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run
from tests.recorder.scenarios import Play, Scripted, call, says
from tests.traces.test_own_code import run_of_spans
from tests.traces.test_promises import broken_promise

pytestmark = pytest.mark.filterwarnings("ignore:Instrumentation format versions")
VERSIONS = pytest.mark.parametrize("version", [3, 5])


def reasons(run: Run) -> list[str]:
    """Codes of what is said of it, once its replay has kept that."""
    said = judge(run)
    assert broken_promise(run, said) is None
    return [reason.code for reason in said.reasons]


# --- structured output -------------------------------------------------------------------------


class City(BaseModel):
    name: str
    people: int = 0


def stock() -> str:
    """How many are left."""
    return "12 left"


def _two_output_tools() -> Play:
    answer = says(call("city", {"name": "Rome"}, "c1"), call("number", {"response": 4}, "c2"))
    return Play(
        Agent(Scripted(answer), output_type=[ToolOutput(City, name="city"), ToolOutput(int, name="number")]), "go"
    )


def _exhaustive() -> Play:
    calls = (
        call("final_result", {"name": "A"}, "c1"),
        call("stock", {}, "c2"),
        call("final_result", {"name": "B"}, "c3"),
    )
    return Play(Agent(Scripted(says("x", *calls)), output_type=City, end_strategy="exhaustive", tools=[stock]), "go")


@VERSIONS
@pytest.mark.parametrize("make", [_two_output_tools, _exhaustive])
def test_several_outputs_in_one_answer_were_all_taken(make: Callable[[], Play], version: Any) -> None:
    run = run_of_spans(make(), version)

    assert reasons(run) == []
    assert {call.outcome for _, call in run.tool_calls} == {"success"}


def _function_that_refuses() -> Play:
    def book(city: str, guests: int) -> str:
        if guests < 2:
            raise ModelRetry("too few")
        return f"{city} for {guests}"

    first, second = (call("final_result", {"city": "Rome", "guests": guests}, f"c{guests}") for guests in (1, 2))
    return Play(Agent(Scripted(says(first), says(second)), output_type=book), "go")


def _function_that_asks_an_agent() -> Play:
    inner = Agent(Scripted(says("Rome it is.")), name="inner")

    async def ask(question: str) -> str:
        return (await inner.run(question)).output

    return Play(Agent(Scripted(says(call("final_result", {"question": "Where?"}, "c1"))), output_type=ask), "go")


@VERSIONS
@pytest.mark.parametrize("make", [_function_that_refuses, _function_that_asks_an_agent])
def test_an_output_function_does_not_run_and_what_it_made_is_no_answer_to_its_call(
    make: Callable[[], Play], version: Any
) -> None:
    run = run_of_spans(make(), version)
    last = [call for _, call in run.tool_calls][-1]

    assert reasons(run) == ["output_function"]
    assert (last.outcome, last.result and last.result.value) == ("success", "Final result processed.")
