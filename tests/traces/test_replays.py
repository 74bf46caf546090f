"""Captures of real exporters: what may be replayed is reproduced, and a changed byte is found where it is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run
from sessions_app.core.spans.span import Span
from tests.recorder.replaying import replayed
from tests.traces.captures import CHOICE, Capture, captures

CAPTURES = captures()
_ANSWER = "messages[2].parts[0].content"


@pytest.mark.parametrize("capture", CAPTURES, ids=str)
def test_replayable_runs_are_reproduced(capture: Capture):
    found = {run.run_id: outcome(run) for run in capture.runs if judge(run).verdict == "replayable"}

    assert {run_id: each for run_id, each in found.items() if each[0] != "reproduced"} == {}


def outcome(run: Run) -> tuple[str, int | None, str | None]:
    """Verdict of a replay, and where the first difference is."""
    result, _ = replayed(encode_native(run))
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)


# --- the check is checked ----------------------------------------------------------------------

ONE_BYTE = {
    "pydantic-ai-v5/order_lookup": ("gen_ai.tool.call.result", f"{_ANSWER}[2].status"),
    "openai-sdk-openinference/order_lookup": ("output.value", _ANSWER),
    "openai-sdk-langfuse-v3/order_lookup": ("langfuse.observation.output", _ANSWER),
    "openai-sdk-langsmith-otel/order_lookup": ("gen_ai.completion", _ANSWER),
    "openai-sdk-mlflow-otlp/order_lookup": ("mlflow.spanOutputs", _ANSWER),
    "openai-sdk-traceloop/order_lookup": ("traceloop.entity.output", _ANSWER),
    "vercel-ai-v5/order_lookup": ("ai.toolCall.result", f"{_ANSWER}[2].status"),
}
"""The attribute of a tool's span that holds its answer, and the path of the difference."""


@pytest.mark.parametrize("name", ONE_BYTE)
def test_one_changed_byte_of_an_answer_diverges_there(name: str):
    attribute, path = ONE_BYTE[name]
    sound = Capture(CHOICE / name)

    changed = replace(sound, change=lambda spans: [_changed(span, attribute) for span in spans])

    assert [outcome(run) for run in sound.runs] == [("reproduced", None, None)]
    told_next = [step.index for step, _ in sound.runs[0].model_calls][1]
    assert [outcome(run) for run in changed.runs] == [("diverged", told_next, path)]


def test_the_changed_one_of_several_past_calls_is_named():
    """The convention spells calls as a text in an answer, and as an object where a request sends them back."""

    def change(spans: list[Span]) -> list[Span]:
        return [_with_other_city(span) for span in spans]

    changed = replace(Capture(CHOICE / "vercel-ai-openinference/parallel_tools"), change=change)

    found = [outcome(run) for run in changed.runs]

    assert found == [("diverged", 6, "messages[1].parts[4].args")]


def _with_other_city(span: Span) -> Span:
    """In the last of four calls that a request sends back."""
    told = span.attributes.get("ai.prompt.messages")
    messages = json.loads(told) if isinstance(told, str) else []
    calls = [part for each in messages for part in each["content"] if "toolCallId" in part and "input" in part]
    for call in calls[3:4]:
        call["input"]["city"] = call["input"]["city"].upper()
    return replace(span, attributes={**span.attributes, "ai.prompt.messages": json.dumps(messages)}) if calls else span


def _changed(span: Span, name: str) -> Span:
    value: JsonValue = span.attributes.get(name)
    if not isinstance(value, str):
        return span
    return replace(span, attributes={**span.attributes, name: value.replace("in transit", "in transiT")})
