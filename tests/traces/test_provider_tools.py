"""Tools that the provider runs itself, and files: parts of messages that are neither words nor calls for the team."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, BinaryContent, ImageUrl
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import (
    FilePart,
    ModelMessage,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from sessions_app.core.assembly.run import assemble
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run
from sessions_app.core.spans.provider_messages.parts import part_of
from sessions_app.core.spans.reading import BuiltinResultPart, CallPart
from sessions_app.core.spans.span import Scope, Span, SpanEvent
from tests.builders import TRACE, a_span
from tests.traces.test_replays import outcome

PICTURE = BinaryContent(b"\xff\xfe\xfb", media_type="image/png")


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if len(messages) > 1:
        return ModelResponse(parts=[FilePart(PICTURE), TextPart("It is late.")])
    searched = NativeToolCallPart("web_search", {"q": "ORD-1"}, "s1"), NativeToolReturnPart("web_search", [1], "s1")
    return ModelResponse(parts=[TextPart("Let me look."), *searched, ToolCallPart("find", {"order": 1}, "c1")])


def find(order: int) -> dict[str, Any]:
    return {"order": order, "state": "late"}


def spans_of(prompt: Any, *, version: Any) -> list[Span]:
    """What the library's own instrumentation sends of a run."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = InstrumentationSettings(tracer_provider=provider, version=version)
    agent = Agent(FunctionModel(answer), capabilities=[Instrumentation(settings)])
    agent.tool_plain(find)
    asyncio.run(agent.run(prompt))
    return [as_received(span) for span in exporter.get_finished_spans()]


def as_received(span: Any) -> Span:
    return a_span(
        trace_id=TRACE,
        span_id=f"{span.context.span_id:016x}",
        parent_id=f"{span.parent.span_id:016x}" if span.parent else None,
        name=span.name,
        start_ns=span.start_time,
        end_ns=span.end_time,
        status=span.status.status_code.name.lower(),
        status_message=span.status.description or "",
        attributes={key: list(value) if isinstance(value, tuple) else value for key, value in span.attributes.items()},
        events=tuple(
            SpanEvent(name=event.name, time_ns=event.timestamp, attributes=dict(event.attributes))
            for event in span.events
        ),
        scope=Scope(name="pydantic-ai"),
    )


@pytest.fixture(params=[5, 6])
def run(request) -> Run:
    prompt = ["Where is it?", PICTURE, ImageUrl("https://shop.test/a.png")]
    return assemble(spans_of(prompt, version=request.param), is_closed=True)


def test_nobody_is_asked_for_what_the_provider_ran(run):
    assert [call.tool_name for _, call in run.tool_calls] == ["find"]
    assert judge(run).verdict == "replayable"
    assert outcome(run) == ("reproduced", None, None)


def test_files_are_files(run):
    first, last = [call for _, call in run.model_calls]

    asked = first.history.message.value["parts"][0]["content"]
    assert asked[1] == {"kind": "binary", "data": "//77", "media_type": "image/png"}
    assert asked[2] == {"kind": "image-url", "url": "https://shop.test/a.png"}
    assert last.response.value["parts"][0] == {"part_kind": "file", "content": asked[1]}
    kinds = [part["part_kind"] for part in first.response.value["parts"]]
    assert kinds == ["text", "builtin-tool-call", "builtin-tool-return", "tool-call"]


# --- the parts ---------------------------------------------------------------------------------

SEARCH = {"type": "web_search", "query": "x"}
CALLS: dict[str, dict[str, Any]] = {
    "OpenTelemetry": {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": SEARCH},
    "OpenTelemetry without a name": {"type": "server_tool_call", "id": "s1", "server_tool_call": SEARCH},
    "Anthropic": {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": SEARCH},
    "Pydantic AI": {"type": "tool_call", "id": "s1", "name": "web_search", "builtin": True, "arguments": SEARCH},
}
RESULTS: dict[str, dict[str, Any]] = {
    "OpenTelemetry": {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": SEARCH},
    "Pydantic AI": {"type": "tool_call_response", "id": "s1", "name": "web_search", "builtin": True, "result": SEARCH},
    "Anthropic": {"type": "web_search_tool_result", "tool_use_id": "s1", "name": "web_search", "content": SEARCH},
}


@pytest.mark.parametrize("said", CALLS.values(), ids=CALLS)
def test_calls_that_the_provider_answers(said):
    assert part_of(said) == CallPart(tool_name="web_search", call_id="s1", arguments=SEARCH, is_builtin=True)


@pytest.mark.parametrize("said", RESULTS.values(), ids=RESULTS)
def test_what_the_provider_gave(said):
    assert part_of(said) == BuiltinResultPart(call_id="s1", tool_name="web_search", content=SEARCH)


def test_the_same_call_without_the_mark_waits_for_the_team():
    said = {**CALLS["Pydantic AI"], "builtin": False}

    assert part_of(said) == CallPart(tool_name="web_search", call_id="s1", arguments=SEARCH)
