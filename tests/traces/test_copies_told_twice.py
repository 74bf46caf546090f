"""One value of one span changed that stands elsewhere in the trace as well: in events, log records, nested JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.assembly.contradictions import is_reworded
from sessions_app.core.assembly.run import assemble
from sessions_app.core.judge.verdict import judge
from sessions_app.core.replay.told_twice import results_told_otherwise
from sessions_app.core.spans.span import Span, SpanEvent
from tests.traces.captures import CHOICE, Capture
from tests.traces.test_told_otherwise import replayed_of

CONVERSATION = "gives the conversation differently from the requests and answers in it"
INSTRUCTIONS = "gives different instructions from the first request in it"


def capture(name: str) -> list[Span]:
    return list(Capture(CHOICE / name).spans)


def changed(spans: list[Span], name: str, was: str, becomes: str) -> list[Span]:
    """The last span of that name which has the text in its attributes, events or logs, with another one there."""
    at = max(
        (at for at, span in enumerate(spans) if span.name.startswith(name) and otherwise(span, was, becomes) != span),
        key=lambda at: spans[at].start_ns or 0,
    )
    return [*spans[:at], otherwise(spans[at], was, becomes), *spans[at + 1 :]]


def otherwise(span: Span, was: str, becomes: str) -> Span:
    def of(event: SpanEvent) -> SpanEvent:
        return replace(event, attributes=put(event.attributes, was, becomes), body=put(event.body, was, becomes))

    attributes = put(span.attributes, was, becomes)
    return replace(span, attributes=attributes, events=tuple(map(of, span.events)), logs=tuple(map(of, span.logs)))


def put(value: Any, was: str, becomes: str) -> Any:
    if isinstance(value, dict):
        return {name: put(each, was, becomes) for name, each in value.items()}
    if isinstance(value, list):
        return [put(each, was, becomes) for each in value]
    return value.replace(was, becomes) if isinstance(value, str) else value


def reason_of(spans: list[Span], part: str = "requests") -> str:
    return replayed_of(spans)[1].facts["proof"][part]["reason"] or ""


TWO_WAYS = "are given in two ways"
NO_CALL = "has a message that no call has"
STRANDS, LATEST = "strands/order_lookup", "strands-latest-semconv/order_lookup"
CYCLE, AGENT = "execute_event_loop_cycle", "invoke_agent"


@pytest.mark.parametrize(
    ("session", "name", "was", "becomes", "words"),
    [
        (STRANDS, CYCLE, "2025-01-07", "2025-01-08", CONVERSATION),
        (LATEST, CYCLE, "2025-01-07", "2025-01-08", CONVERSATION),
        (STRANDS, AGENT, "support agent", "sales agent", INSTRUCTIONS),
    ],
)
def test_a_copy_around_the_calls_that_tells_otherwise_is_named(
    session: str, name: str, was: str, becomes: str, words: str
) -> None:
    whole = capture(session)

    assert words not in reason_of(whole)
    assert words in reason_of(changed(whole, name, was, becomes))


def test_the_results_beside_a_choice_are_those_of_the_tools_that_it_asks_for() -> None:
    """Strands tells them in an attribute of the choice itself."""
    whole = capture(STRANDS)
    at = next(at for at, span in enumerate(whole) if any("tool.result" in event.attributes for event in span.events))
    choice = next(event for event in whole[at].events if "tool.result" in event.attributes)

    for becomes, is_another in ((choice.attributes["tool.result"], False), ("no blocks", False), ("zq", True)):
        said = str(choice.attributes["tool.result"])
        told = said.replace("call_", "call_zq") if becomes == "zq" else becomes
        other = replace(choice, attributes={**choice.attributes, "tool.result": told})
        events = tuple(other if event is choice else event for event in whole[at].events)
        spans = [*whole[:at], replace(whole[at], events=events), *whole[at + 1 :]]
        assert (CONVERSATION in reason_of(spans)) is is_another


ALL_MESSAGES = "pydantic_ai.all_messages"


def failed_at_the_last_request() -> list[Span]:
    """As Pydantic AI exports a run whose last request failed: that span has no messages."""
    whole = capture("pydantic-ai-v5/order_lookup")
    last = max(whole, key=lambda span: (span.start_ns or 0) if span.name.startswith("chat ") else 0)
    root = next(span for span in whole if span.parent_id is None)
    messages = json.loads(str(root.attributes[ALL_MESSAGES]))[:-1]
    without = {name: value for name, value in last.attributes.items() if "messages" not in name}
    kept = {name: value for name, value in root.attributes.items() if name != "final_result"}
    told = {**kept, ALL_MESSAGES: json.dumps(messages, ensure_ascii=False, separators=(",", ":"))}
    failed = {last.span_id: without, root.span_id: told}
    return [
        replace(span, attributes=failed[span.span_id], status="error", status_message="Too long.")
        if span.span_id in failed
        else span
        for span in whole
    ]


@pytest.mark.parametrize(
    ("name", "was", "becomes"),
    [
        (AGENT, '"delivered_on":"2025-01-07"', '"delivered_on":"2025-01-08"'),
        ("execute_tool get_shipping_status", '"delivered_on":"2025-01-07"', '"delivered_on":"2025-01-08"'),
        (AGENT, 'customer\\": \\"Ana', 'customer\\": \\"Eva'),
        (AGENT, "Where is the kettle", "Where is my kettle"),
    ],
)
def test_what_an_agents_span_tells_otherwise_is_named_where_the_last_request_was_not_recorded(
    name: str, was: str, becomes: str
) -> None:
    whole = failed_at_the_last_request()

    assert judge(assemble(whole, is_closed=True)).verdict == "replayable"
    assert CONVERSATION not in reason_of(whole)
    assert "was not recorded" in reason_of(whole)
    assert CONVERSATION in reason_of(changed(whole, name, was, becomes))


BY_TWO, GRAPH = "vercel-ai-openinference/parallel_tools", "langgraph-openinference-anthropic"
SUPPORT, SALES = "support agent", "sales agent"
AGENT_OF_TWO, PROMPT = "ai.generateText kettle", "llm.input_messages.0.message.content"
ORDER, OTHER = '"input": {"order_id": "A-1001', '"input": {"order_id": "A-1002'
WHO, WHO_ELSE = '"input": {"customer": "Ana', '"input": {"customer": "Eva'


@pytest.mark.parametrize(
    ("session", "name", "attribute", "was", "becomes", "words"),
    [
        (BY_TWO, AGENT_OF_TWO, PROMPT, SUPPORT, SALES, CONVERSATION),
        (BY_TWO, AGENT_OF_TWO, "input.value", SUPPORT, SALES, CONVERSATION),
        (BY_TWO, "ai.generateText.doGenerate", "output.value", "all four", "all five", TWO_WAYS),
        ("litellm-openinference/parallel_tools", "", "output.value", "all four", "all five", TWO_WAYS),
        (f"{GRAPH}/order_lookup", "Chat", "output.value", '"text": "Good', '"text": "Bad', TWO_WAYS),
        (f"{GRAPH}/parallel_tools", "Chat", "output.value", '"text": "Let me', '"text": "Let us', TWO_WAYS),
        (f"{GRAPH}/order_lookup", "support_agent", "output.value", ORDER, OTHER, NO_CALL),
        (f"{GRAPH}/order_lookup", "model", "output.value", WHO, WHO_ELSE, NO_CALL),
    ],
)
def test_an_attribute_that_tells_otherwise_what_another_one_tells_is_named(
    session: str, name: str, attribute: str, was: str, becomes: str, words: str
) -> None:
    whole = capture(session)
    found = (at for at, span in enumerate(whole) if span.name.startswith(name))
    at = next(at for at in found if was in str(whole[at].attributes.get(attribute)))
    other = put(whole[at].attributes[attribute], was, becomes)
    spans = [*whole[:at], replace(whole[at], attributes={**whole[at].attributes, attribute: other}), *whole[at + 1 :]]

    assert words not in reason_of(whole)
    assert words in reason_of(spans)


def test_an_output_that_goes_on_behind_its_quotes_is_another_one() -> None:
    whole = capture("openai-sdk-mlflow-otlp/order_lookup")
    at = next(at for at, span in enumerate(whole) if span.attributes.get("mlflow.spanType") == '"AGENT"')
    said = str(whole[at].attributes["mlflow.spanOutputs"])

    for becomes, is_another in ((said, False), (f"{said} and more", True)):
        spans = [*whole[:at], replace(whole[at], attributes={**whole[at].attributes, "mlflow.spanOutputs": becomes})]
        assert ("gives a different output" in reason_of([*spans, *whole[at + 1 :]], "outcome")) is is_another


def test_an_agents_answer_that_lists_the_calls_of_its_run_without_their_results_is_held_against_these() -> None:
    """The Vercel AI SDK lists them so where a tool failed."""
    whole = capture("vercel-ai-v7/order_lookup")
    at = next(at for at, span in enumerate(whole) if span.parent_id is None)
    (message,) = json.loads(str(whole[at].attributes["gen_ai.output.messages"]))
    calls = [part for part in message["parts"] if part["type"] != "tool_call_response"]
    assert {"text", "tool_call"} == {part["type"] for part in calls}

    for becomes, is_another in (("A-1001", False), ("A-1002", True)):
        said = json.dumps([{**message, "parts": put(calls, "A-1001", becomes) if is_another else calls}])
        other = replace(whole[at], attributes={**whole[at].attributes, "gen_ai.output.messages": said})
        assert (CONVERSATION in reason_of([*whole[:at], other, *whole[at + 1 :]])) is is_another


def test_the_chunks_of_a_stream_are_held_against_its_answer() -> None:
    whole = capture("openai-sdk-mlflow-otlp/order_lookup")
    chats = [at for at, span in enumerate(whole) if span.attributes.get("mlflow.spanType") == '"CHAT_MODEL"']
    at = max(chats, key=lambda at: whole[at].start_ns or 0)
    words = json.loads(str(whole[at].attributes["mlflow.spanOutputs"]))["choices"][0]["message"]["content"]

    for said, is_another in ((words, False), (f"{words} zq", True)):
        pieces = said[:9], said[9:]
        chunks = [{"object": "chat.completion.chunk", "choices": [{"delta": {"content": each}}]} for each in pieces]
        events = tuple(
            SpanEvent(name=f"mlflow.chunk.item.{n}", attributes={"mlflow.chunk.value": json.dumps(chunk)})
            for n, chunk in enumerate(chunks)
        )
        spans = [*whole[:at], replace(whole[at], events=events), *whole[at + 1 :]]
        assert (TWO_WAYS in reason_of(spans)) is is_another


LLAMA, FUNCTION = "llama-index-openinference/order_lookup", "FunctionTool"
VERCEL, CALL = "vercel-ai-v6/tool_exception", "ai.generateText.do"
STREAM = "google-adk-litellm/stream"
OUTPUT = '"raw_output":"{\\"order_id\\": \\"A-1001'
INPUT = '"kwargs":{"order_id":"A-1001'


@pytest.mark.parametrize(
    ("session", "name", "was", "becomes", "part", "words"),
    [
        (LLAMA, FUNCTION, OUTPUT, OUTPUT.replace("1001", "1002"), "requests", "gives the result in two ways"),
        (LLAMA, FUNCTION, INPUT, INPUT.replace("1001", "1002"), "tool_arguments", "gives its arguments in two ways"),
        (LLAMA, FUNCTION, '"tool_name":"get_', '"tool_name":"set_', "tool_arguments", "names the tool set_shipping"),
        (VERCEL, CALL, "503 Service", "504 Service", "requests", "gives the result as an error in other words"),
        (VERCEL, CALL, "cancelling sub_91", "cancelling sub_91, done", "requests", "as an error in other words"),
        (STREAM, "generate_content", '"content":"Order A-1"', '"content":"Order B-1"', "requests", TWO_WAYS),
    ],
)
def test_what_a_span_of_a_tool_or_a_stream_tells_twice_and_otherwise_is_named(
    session: str, name: str, was: str, becomes: str, part: str, words: str
) -> None:
    whole = capture(session)

    assert words not in reason_of(whole, part)
    assert words in reason_of(changed(whole, name, was, becomes), part)


@pytest.mark.parametrize(
    ("said", "is_another"),
    [
        ("Error: rate limit of shop 7 was hit", False),
        ("Error: rate limit of shop 7 was hit. Please fix your mistakes.", False),
        ("rate limit of shop 7", False),
        ("The payments service is away.", False),
        ("rate limit of shop 8 was hit", True),
    ],
)
def test_an_error_may_be_told_with_words_around_it_or_in_others(said: str, is_another: bool) -> None:
    assert is_reworded("rate limit of shop 7 was hit", said, is_last=False) is is_another


def test_an_order_of_results_does_not_hide_a_result_that_is_told_twice() -> None:
    whole = capture(LLAMA)
    at = next(at for at, span in enumerate(whole) if OUTPUT in str(span.attributes.get("output.value")))
    run = assemble(changed(whole, whole[at].name, OUTPUT, OUTPUT.replace("1001", "1002")), is_closed=True)
    model = next(step for step in run.steps if step.index > 1 and "gpt" in step.name)
    odd = replace(model, extra={**model.extra, "tool_results": "are in another order"})
    steps = tuple(odd if step is model else step for step in run.steps)

    said = results_told_otherwise(replace(run, steps=steps)) or ""

    assert "are in another order; the span of" in said
