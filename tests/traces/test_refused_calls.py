"""Calls that were refused because their arguments do not fit, as Pydantic AI's own spans tell of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry

from sessions_app.core.assembly.run import assemble
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run, ToolCall
from tests.agents.own_agents import own, replayed_by
from tests.recorder.replaying import assert_promise_kept, replayed
from tests.recorder.scenarios import Play, Scripted, call, says
from tests.traces.test_own_code import run_of_spans, spans_of_play

NO_OBJECT = ['{"x": 1', "null", "[]", '"text"', '{"x": 1} trailing']
NO_FIT = ["", '{"x": "abc"}', '{"X": 1}']
NO_DAY = ['{"on": "2026-13-01"}', '{"on": "2026-12-01", "count": 1.5}', "{}", "", '{"on":']


class Day(BaseModel):
    on: date
    count: int = 1


def asks_for_a_tool(arguments: Any) -> Play:
    agent = Agent(Scripted(says(call("find", arguments, "k1")), says("There.")), retries=5)

    @agent.tool_plain
    def find(x: float) -> str:
        if x == 7:
            raise ModelRetry("Not 7.")
        return f"{x}"

    return Play(agent, "q")


def gives_a_day(arguments: Any, **options: Any) -> Play:
    answers = says(call("final_result", arguments, "k1")), says(call("final_result", '{"on": "2026-01-01"}', "k2"))
    return Play(Agent(Scripted(*answers), output_type=Day, retries=3, **options), "q")


@pytest.mark.parametrize("version", [5, 6])
@pytest.mark.parametrize("arguments", NO_OBJECT + NO_FIT + ['{"x": 7}'])
def test_a_refused_call_of_a_tool_is_refused_again(arguments, version):
    run = run_of_spans(asks_for_a_tool(arguments), version)

    assert outcomes(run) == ["retried"]
    assert_agrees(run)


@pytest.mark.parametrize("version", [5, 6])
@pytest.mark.parametrize("arguments", NO_DAY)
def test_a_refused_output_is_refused_again(arguments, version):
    run = run_of_spans(gives_a_day(arguments), version)

    assert outcomes(run) == ["retried", "success"]
    assert_agrees(run)


@pytest.mark.parametrize("make", [asks_for_a_tool, gives_a_day])
def test_the_code_that_refused_it_then_refuses_it_again(make):
    result = replayed_by(run_of_spans(make("[]")), own(make("[]")))

    assert (result.verdict, result.divergence, result.error) == ("reproduced", None, None)


@pytest.mark.parametrize("result", [None, "other"])
def test_a_span_that_tells_of_a_call_again_is_judged(result):
    spans = spans_of_play(asks_for_a_tool('{"x": 1}'))
    of_tool = next(span for span in spans if span.name == "execute_tool find")
    said = {} if result is None else {"gen_ai.tool.call.result": result}
    again = replace(of_tool, span_id="00aa00aa00aa00aa", attributes={**of_tool.attributes, **said})

    judged = assert_promise_kept(encode_native(assemble([*spans, again], is_closed=True)))

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("call_contradicted", 3)]


def assert_agrees(run: Run) -> None:
    result, made = replayed(encode_native(run))

    assert judge(run).verdict == "replayable"
    assert (result.verdict, result.divergence, result.error) == ("reproduced", None, None)
    assert made is not None
    assert compare_runs(run, made).divergence is None


def outcomes(run: Run) -> list[str | None]:
    return [step.call.outcome for step in run.steps if isinstance(step.call, ToolCall)]
