import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.conventions.langfuse.span import read
from sessions_app.core.conventions.langfuse.usage import tokens_of
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    Reading,
    ResultPart,
    RetrievedChunk,
    TextPart,
    ToolDefinition,
)
from sessions_app.core.spans.span import Span, SpanEvent
from sessions_app.core.spans.times import nanoseconds

TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
OFFERED = (ToolDefinition(name="find", parameters={"type": "object"}),)
NAMES = (
    *("type", "input", "output", "model.name", "model.parameters", "usage_details", "level", "status_message"),
    *("completion_start_time", "metadata.inputs", "metadata.ls_temperature", "metadata.tool_call_id"),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["[1", "{}", "1e999", "1" + "0" * 400, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["messages", "role", "args"]), inner),
    max_leaves=8,
)


def make_span(attributes: dict[str, Any], **fields: Any) -> Span:
    return Span(**{"trace_id": "a" * 32, "span_id": "b" * 16, "name": "step", "attributes": attributes, **fields})


def observation(**said: Any) -> dict[str, Any]:
    """Attributes as the SDKs write them: what is no text is JSON."""
    return {
        f"langfuse.observation.{name.replace('__', '.')}": value if isinstance(value, str) else json.dumps(value)
        for name, value in said.items()
    }


def reading_of(attributes: dict[str, Any], **fields: Any) -> Reading:
    reading = read(make_span(attributes, **fields))
    assert reading is not None
    return reading


def test_read_leaves_a_span_that_langfuse_only_marked():
    assert read(make_span({"langfuse.environment": "prod", "langfuse.release": "1", "session.id": "s"})) is None


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("generation", "model"),
        ("TOOL", "tool"),
        ("agent", "agent"),
        ("chain", "chain"),
        ("span", "chain"),
        ("retriever", "retrieval"),
        ("embedding", "embedding"),
        ("guardrail", "chain"),
    ],
)
def test_read_kind_is_the_observations_type(said, kind):
    assert reading_of(observation(type=said)).kind == kind


def test_read_kind_is_none_where_only_the_trace_is_named():
    assert reading_of({"langfuse.trace.name": "checkout"}).kind is None


def test_read_generation_with_a_request_of_openai():
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": '{"a": 1}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "[]"},
    ]
    reading = reading_of(
        observation(
            type="generation",
            input={"tools": [TOOL], "messages": messages},
            output={"role": "assistant", "content": "Nowhere."},
            model__name="gpt-4o-2024",
            model__parameters={"temperature": 0.2, "max_tokens": "Infinity", "seed": 7},
            usage_details={"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 12}},
            completion_start_time='"2026-11-21T06:59:17.772616Z"',
        )
    )

    assert reading.messages == (
        ChatMessage(role="system", parts=(TextPart(text="Be brief."),)),
        ChatMessage(role="user", parts=(TextPart(text="Where is it?"),)),
        ChatMessage(role="assistant", parts=(CallPart(tool_name="find", call_id="c1", arguments='{"a": 1}'),)),
        ChatMessage(role="tool", parts=(ResultPart(call_id="c1", content="[]"),)),
    )
    assert reading.answer == ChatMessage(role="assistant", parts=(TextPart(text="Nowhere."),))
    assert reading.tools == OFFERED
    assert reading.settings == {"temperature": 0.2, "seed": 7}
    assert (reading.model, reading.answered_model) == ("gpt-4o-2024", "gpt-4o-2024")
    assert (reading.input_tokens, reading.output_tokens) == (20, 3)
    assert reading.first_token_ns == 1795244357772616000


def test_read_generation_of_langchain_has_its_tools_among_the_messages():
    reading = reading_of(
        observation(
            type="generation",
            input=[{"role": "user", "content": "Hi"}, {"role": "tool", "content": TOOL}],
            output={"role": "assistant", "content": "", "tool_calls": [{"name": "find", "args": {"a": 1}, "id": "c1"}]},
            model__name="gpt-4o",
            metadata__ls_model_name="gpt-4o",
            metadata__ls_temperature="0.2",
            metadata__ls_max_tokens="400",
            metadata__langgraph_node="model",
        )
    )

    assert reading.messages == (ChatMessage(role="user", parts=(TextPart(text="Hi"),)),)
    assert reading.tools == OFFERED
    assert reading.answer is not None
    assert reading.answer.parts == (CallPart(tool_name="find", call_id="c1", arguments={"a": 1}),)
    assert reading.settings == {"temperature": 0.2, "max_tokens": 400}
    assert (reading.model, reading.answered_model, reading.framework) == ("gpt-4o", None, "langgraph")


def test_read_generation_without_content_says_nothing_of_it():
    reading = reading_of(observation(type="generation", model__name="gpt-4o"))

    assert (reading.messages, reading.answer, reading.tools, reading.answered_model) == (None, None, None, None)
    assert (reading.input_tokens, reading.output_tokens, reading.settings) == (None, None, None)


@pytest.mark.parametrize("words", ["plain words", "42", "1e5", "null"])
def test_read_generation_of_plain_words_keeps_them(words):
    reading = reading_of(observation(type="generation", input=words, output=words))

    assert reading.messages == (ChatMessage(role="user", parts=(TextPart(text=words),)),)
    assert reading.answer == ChatMessage(role="assistant", parts=(TextPart(text=words),))


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input": 11, "output": 28, "total": 167, "input_cache_read": 128}, (139, 28)),
        ({"input": 139, "output": 28, "total": 167, "input_cache_read": 128}, (139, 28)),
        ({"input": 5, "output": 2, "total": 17, "output_reasoning": 10}, (5, 12)),
        ({"input": 5, "cache_read_input_tokens": 7, "output": 1}, (12, 1)),
        ({"input_tokens": 9, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 8}}, (9, 1)),
        ({"input": 4}, (4, None)),
        ({"input": "many"}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_tokens_of_counts_what_came_from_a_cache_once(usage, tokens):
    assert tokens_of(usage) == tokens


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({"args": [], "kwargs": {"city": "Oslo"}}, {"city": "Oslo"}),
        ({"args": ["Oslo"], "kwargs": {}}, {"args": ["Oslo"], "kwargs": {}}),
        ({"name": "weather", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}, {"city": "Oslo"}),
        ({"city": "Oslo"}, {"city": "Oslo"}),
    ],
)
def test_read_tool_arguments_by_name(given, arguments):
    reading = reading_of(observation(type="tool", input=given), name="weather")

    assert (reading.tool_name, reading.arguments, reading.has_arguments) == ("weather", arguments, True)
    assert not reading.has_result


def test_read_tool_takes_the_exact_arguments_of_langchain_before_what_python_printed():
    reading = reading_of(observation(type="tool", input="{'city': 'Oslo'}", metadata__inputs={"city": "Oslo"}))

    assert reading.arguments == {"city": "Oslo"}


@pytest.mark.parametrize(
    ("said", "result"), [("09:30", "09:30"), ("1e5", "1e5"), ("42", 42), ("[]", []), ('{"a": 1}', {"a": 1})]
)
def test_read_tool_result_is_json_only_where_it_was_written_as_json(said, result):
    reading = reading_of(observation(type="tool", output=said))

    assert (reading.result, reading.has_result, reading.has_arguments) == (result, True, False)


def test_read_tool_result_of_langchain_is_what_the_model_was_given():
    message = {"type": "tool", "content": "503", "tool_call_id": "c1", "status": "error"}
    reading = reading_of(observation(type="tool", output=message))

    assert (reading.result, reading.call_id) == ("503", "c1")
    assert reading.error == ErrorInfo(type=None, message="503")


def test_read_tool_result_of_a_handoff_is_the_message_to_its_call():
    said = [{"type": "human", "content": "Hi"}, {"type": "tool", "content": "Handed over.", "tool_call_id": "c1"}]
    command = {"graph": "__parent__", "goto": "billing", "update": {"messages": said}}
    other = {**command, "update": {"messages": said[:1]}}

    assert reading_of(observation(type="tool", output=command)).result == "Handed over."
    assert reading_of(observation(type="tool", output=other)).result == other


def test_read_retriever_gives_chunks():
    found = [
        {"id": "m-1", "page_content": "Hold it.", "metadata": {"page": 3}},
        {"text": "Rinse.", "score": 0.5},
        "Wait.",
    ]
    reading = reading_of(observation(type="retriever", input={"args": ["reset"], "kwargs": {}}, output=found))

    assert reading.query == "reset"
    assert reading.chunks == (
        RetrievedChunk(chunk_id="m-1", content="Hold it.", extra={"metadata": {"page": 3}}),
        RetrievedChunk(content="Rinse.", score=0.5),
        RetrievedChunk(content="Wait."),
    )


@pytest.mark.parametrize("found", ["no list", [1, 2], {"documents": "x"}])
def test_read_retriever_makes_no_chunks_of_other_things(found):
    assert reading_of(observation(type="retriever", output=found)).chunks is None


def test_read_embedding_names_its_model():
    reading = reading_of(
        observation(type="embedding", input=["a", "b"], model__name="small", usage_details={"input": 3})
    )

    assert (reading.embedding_model, reading.input, reading.input_tokens) == ("small", ["a", "b"], 3)


def test_read_run_gives_the_words_of_the_last_messages():
    messages = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello."}]
    attributes = observation(type="agent", input={"messages": messages[:1]}, output={"messages": messages})
    reading = reading_of(attributes, name="helper")

    assert (reading.input, reading.output, reading.agent_name) == ("Hi", "Hello.", "helper")
    assert reading.conversation == (
        ChatMessage(role="user", parts=(TextPart(text="Hi"),)),
        ChatMessage(role="assistant", parts=(TextPart(text="Hello."),)),
    )


def test_read_chain_inside_a_run_keeps_what_it_was_given():
    given = {"args": ["x"], "kwargs": {}}
    attributes = observation(type="chain", input=given, output={"messages": []})

    assert reading_of(attributes, parent_id="c" * 16).input == given
    assert reading_of(attributes).input == "x"


def test_read_trace_input_counts_where_the_observation_has_none():
    trace = {"langfuse.trace.input": "asked", "langfuse.trace.output": "told"}
    own = reading_of({**trace, **observation(type="span", input="own", output="mine")})
    other = reading_of({**trace, **observation(type="span")})

    assert (own.input, own.output) == ("own", "mine")
    assert (other.input, other.output) == ("asked", "told")


@pytest.mark.parametrize(
    "name",
    [
        "session.id",
        "langfuse.session.id",
        "langfuse.observation.metadata.langfuse_session_id",
        "langfuse.observation.metadata.thread_id",
        "langfuse.trace.metadata.session_id",
    ],
)
def test_read_session_and_what_was_understood(name):
    reading = reading_of({**observation(type="span"), name: "s-1", "user.id": "u-1", "langfuse.trace.tags": ["x"]})

    assert (reading.session_id, reading.user_id) == ("s-1", "u-1")
    assert reading.used == {"langfuse.observation.type", name, "user.id"}


def test_read_error_is_the_level_or_the_status():
    attributes = observation(type="tool", level="ERROR", status_message="503")
    raised = SpanEvent(name="exception", attributes={"exception.type": "langgraph.errors.ParentCommand"})

    assert reading_of(attributes).error == ErrorInfo(type=None, message="503")
    assert not reading_of(attributes).is_error_harmless
    assert reading_of(observation(type="tool", level="WARNING", status_message="slow")).error is None
    assert reading_of(attributes, events=(raised,)).is_error_harmless


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-11-21T07:00:45.142276+00:00", 1795244445142276000),
        ("2026-11-21T08:00:45+01:00", 1795244445000000000),
        ("2026-11-21 07:00:45", 1795244445000000000),
        (1795244445, 1795244445000000000),
        (1795244445142, 1795244445142000000),
        (1795244445142276000, 1795244445142276000),
        ("soon", None),
        (0, None),
        (float("nan"), None),
        (10**400, None),
        (True, None),
        ("0001-01-01T00:00:00+23:59", None),
    ],
)
def test_nanoseconds_of_texts_and_numbers(value, expected):
    assert nanoseconds(value) == expected


@given(st.dictionaries(st.sampled_from([f"langfuse.observation.{name}" for name in NAMES]), VALUES, min_size=1))
def test_read_never_raises(attributes):
    reading = read(make_span(attributes))

    assert reading is not None
    assert reading.used <= attributes.keys()


@given(st.sampled_from(["generation", "tool", "retriever", "agent", "embedding"]), VALUES, VALUES, VALUES)
def test_read_never_raises_on_any_content(kind, given_, said, usage):
    said_by = {"type": kind, "input": given_, "output": said, "usage_details": usage, "model.parameters": usage}

    assert reading_of({f"langfuse.observation.{name}": value for name, value in said_by.items()}).kind is not None
