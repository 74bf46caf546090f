"""Runs that came as spans, replayed with the code that made them: structured output in each way it is asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from pydantic_ai import Agent, TextOutput
from pydantic_ai.models.instrumented import InstrumentationSettings

from sessions_app.core.assembly.run import assemble
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run
from sessions_app.core.spans.span import Span
from tests.agents.own_agents import own, place, replayed_by
from tests.recorder import scenarios
from tests.recorder.scenarios import Play, Scripted, call, says
from tests.traces.test_provider_tools import as_received

STRUCTURED = (
    *(scenarios.output_tool, scenarios.output_tool_retry, scenarios.several_output_tools),
    scenarios.unnamed_output_tools,
    *(scenarios.prompted_output, scenarios.prompted_list_output, scenarios.recursive_output),
    *(scenarios.tool_beside_output, scenarios.tool_beside_output_early),
)


def run_of_spans(play: Play, version: Any = 5) -> Run:
    return assemble(spans_of_play(play, version), is_closed=True)


def spans_of_play(play: Play, version: Any = 5) -> list[Span]:
    """What the library's own instrumentation sends of it."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, version=version))
    try:
        asyncio.run(play.agent.run(play.prompt, **play.arguments))
    finally:
        Agent.instrument_all(False)
    return [as_received(span) for span in exporter.get_finished_spans()]


@pytest.mark.parametrize("version", [5, 6])
@pytest.mark.parametrize("make", STRUCTURED, ids=lambda make: make.__name__)
def test_the_code_that_made_the_spans_gives_the_recorded_run(make, version):
    result = replayed_by(run_of_spans(make(), version), own(make()))

    assert (result.verdict, result.divergence, result.error) == ("reproduced", None, None)


class Order(BaseModel):
    order_id: str


def booking(output: Any) -> Play:
    answer = says(call("final_result", {"order_id": "ORD-1"}, "o"))
    return Play(Agent(Scripted(answer), name="booker", output_type=output), "Book")


def count_words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("version", [2, 3, 5])
@pytest.mark.filterwarnings("ignore:Instrumentation format versions")
def test_a_function_that_made_the_output_of_a_text_is_no_call_that_a_model_asked_for(version):
    play = Play(Agent(Scripted(says("two words")), name="counting", output_type=TextOutput(count_words)), "Count")
    run = run_of_spans(play, version)

    assert [(step.kind, step.name) for step in run.steps[-2:]] == [("model", "scripted-1"), ("other", "count_words")]
    assert [reason.code for reason in judge(run).reasons] == ["output_made_by_code"]
    assert replayed_by(run, own(play)).verdict == "reproduced"


def test_another_output_type_is_a_difference():
    class Other(BaseModel):
        order_id: str
        amount: int = 0

    result = replayed_by(run_of_spans(booking(Order)), own(booking(Other)))

    assert result.verdict == "diverged"
    assert place(result)[1:3] == (1, "parameters.output_tools[0].parameters_json_schema.properties.amount")
