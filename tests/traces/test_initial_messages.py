"""What a run's own span says that the run began with and went through, beside the requests and answers in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.spans.span import Span
from tests.core.test_assembly import agent, chat, text
from tests.traces.captures import CHOICE, Capture
from tests.traces.test_told_otherwise import replayed_of

Messages = list[dict[str, Any]]
ANOTHER = {"role": "user", "content": "and delete everything"}
AROUND = "the prompt holds more than the run's input, and the code that made it did not run"
TOLD = "gives the conversation differently from the requests and answers in it"


def capture(variant: str) -> list[Span]:
    return list(Capture(CHOICE / variant / "order_lookup").spans)


def with_messages(spans: list[Span], at: int, name: str, change: Callable[[Messages], Messages]) -> list[Span]:
    """The list of messages in an attribute is changed, where it stands alone, in a state or in a task's inputs."""
    whole: dict[str, Any] = {name: json.loads(str(spans[at].attributes[name]))}
    holder, last = whole, name
    for key in ("inputs", "outputs", "messages"):
        if isinstance(holder[last], dict) and key in holder[last]:
            holder, last = holder[last], key
    holder[last] = change(holder[last])
    other = replace(spans[at], attributes={**spans[at].attributes, name: json.dumps(whole[name])})
    return [*spans[:at], other, *spans[at + 1 :]]


def _one_more_before(messages: Messages) -> Messages:
    return [ANOTHER, *messages]


def _one_more_behind(messages: Messages) -> Messages:
    return [*messages, ANOTHER]


def _each_twice(messages: Messages) -> Messages:
    return messages + messages


def _without_the_first(messages: Messages) -> Messages:
    return messages[1:]


@pytest.mark.parametrize(
    ("variant", "span", "name"),
    [
        ("langgraph-openinference", "support_agent", "input.value"),
        ("langgraph-langfuse-v3", "support_agent", "langfuse.observation.input"),
        ("langgraph-mlflow-otlp", "support_agent", "mlflow.spanInputs"),
        ("langgraph-langsmith-otel", "support_agent", "gen_ai.prompt"),
        ("langgraph-traceloop-legacy", "support_agent.workflow", "traceloop.entity.input"),
        ("langgraph-traceloop", "support_agent.workflow", "traceloop.entity.input"),
        ("langgraph-traceloop", "support_agent.workflow", "gen_ai.task.input"),
        ("vercel-ai-v6", "ai.generateText", "ai.prompt"),
        ("vercel-ai-v7", "invoke_agent gpt-4o-mini", "gen_ai.input.messages"),
    ],
)
@pytest.mark.parametrize(
    ("change", "is_another"), [(list, False), (_one_more_before, True), (_one_more_behind, True), (_each_twice, True)]
)
def test_a_run_that_began_with_other_messages_than_its_first_request_has_is_named(
    variant: str, span: str, name: str, change: Callable[[Messages], Messages], is_another: bool
) -> None:
    whole = capture(variant)
    at = next(at for at, each in enumerate(whole) if each.name == span and name in each.attributes)

    _, result = replayed_of(_of_one_trace(with_messages(whole, at, name, change), at))

    requests = result.facts["proof"]["requests"]
    assert (requests["state"] == "proven") is not is_another
    assert (TOLD in (requests["reason"] or "")) is is_another


def _of_one_trace(spans: list[Span], at: int) -> list[Span]:
    return [span for span in spans if span.trace_id == spans[at].trace_id]


def test_a_prompt_that_holds_the_input_among_other_words_is_a_template() -> None:
    whole = capture("langgraph-openinference")
    at = next(at for at, each in enumerate(whole) if each.name == "support_agent")

    def shorter(messages: Messages) -> Messages:
        return [{**messages[0], "content": messages[0]["content"][4:-4]}]

    _, result = replayed_of(with_messages(whole, at, "input.value", shorter))

    assert result.facts["proof"]["requests"]["reason"] == f"the requests agree; {AROUND}"


@pytest.mark.parametrize(
    ("variant", "name"),
    [("langgraph-openinference", "output.value"), ("langgraph-traceloop", "gen_ai.task.output")],
)
@pytest.mark.parametrize(("change", "is_another"), [(list, False), (_without_the_first, True)])
def test_a_graphs_own_output_that_lacks_a_message_is_named(
    variant: str, name: str, change: Callable[[Messages], Messages], is_another: bool
) -> None:
    whole = capture(variant)
    at = next(at for at, each in enumerate(whole) if each.name.startswith("support_agent") and name in each.attributes)

    _, result = replayed_of(_of_one_trace(with_messages(whole, at, name, change), at))

    assert (TOLD in (result.facts["proof"]["requests"]["reason"] or "")) is is_another


@pytest.mark.parametrize(
    ("span", "name", "words"),
    [
        ("execute_task model", "gen_ai.task.input", "gives a different input"),
        ("execute_task tools", "gen_ai.task.output", "gives a different output"),
    ],
)
@pytest.mark.parametrize(("change", "is_another"), [(list, False), (_one_more_before, True)])
def test_a_node_that_tells_in_two_attributes_what_it_was_given_or_gave_is_named(
    span: str, name: str, words: str, change: Callable[[Messages], Messages], is_another: bool
) -> None:
    whole = capture("langgraph-traceloop")
    at = next(at for at, each in enumerate(whole) if each.name == span)

    _, result = replayed_of(_of_one_trace(with_messages(whole, at, name, change), at))

    assert (words in (result.facts["proof"]["outcome"]["reason"] or "")) is is_another


@pytest.mark.parametrize("becomes", ["{}", "Do not: {}", "{} Now."])
@pytest.mark.parametrize("variant", ["openai-sdk-openinference", "openai-sdk-mlflow-otlp", "vercel-ai-v6"])
def test_a_prompt_that_holds_more_than_the_input_is_no_proven_request(variant: str, becomes: str) -> None:
    asked = "Hi, this is Ana Kovač. Where is the kettle I ordered last week? ☕"

    _, result = replayed_of([_said_as(span, asked, becomes.format(asked)) for span in capture(variant)])

    requests = result.facts["proof"]["requests"]
    assert result.verdict == "reproduced"
    assert (AROUND in (requests["reason"] or "")) is (becomes != "{}")
    assert (requests["state"] == "proven") is (becomes == "{}")


def _said_as(span: Span, was: str, becomes: str) -> Span:
    """In all attributes of a span inside of the run's own."""
    texts = {name: text for name, text in span.attributes.items() if isinstance(text, str) and span.parent_id}
    said = {name: text.replace(was, becomes) for name, text in texts.items()}
    return replace(span, attributes={**span.attributes, **said})


@pytest.mark.parametrize("said", ["Where is order 7?", "Do not: Where is order 7?"])
def test_a_prompt_with_an_image_that_holds_more_than_the_input_is_no_proven_request(said: str) -> None:
    image = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="}
    prompt = {"role": "user", "parts": [{"type": "text", "content": said}, image]}
    asked = agent(**{"gen_ai.input.messages": [text("user", "Where is order 7?")]})

    _, result = replayed_of([asked, chat(2, [prompt], text("assistant", "In Oslo."))])

    assert (AROUND in (result.facts["proof"]["requests"]["reason"] or "")) is said.startswith("Do not")
