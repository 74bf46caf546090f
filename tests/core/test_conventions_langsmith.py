import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.conventions.langsmith.errors import error_in
from sessions_app.core.conventions.langsmith.span import read
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    Reading,
    RetrievedChunk,
    TextPart,
    ToolDefinition,
)
from sessions_app.core.spans.span import Span, SpanEvent

TRACEBACK = "Traceback (most recent call last):\n  File 'x.py', line 1"
NAMES = (
    *("langsmith.span.kind", "gen_ai.prompt", "gen_ai.completion", "langsmith.metadata.ls_invocation_params"),
    *("langsmith.metadata.usage_metadata", "gen_ai.usage.input_tokens", "gen_ai.response.finish_reasons"),
    *("langsmith.metadata.ls_temperature", "gen_ai.tool.definitions", "langsmith.invocation_params"),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["[1", "{}", "1e999", "1" + "0" * 400, 10**400]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["messages", "output", "generations"]), inner)
    ),
    max_leaves=8,
)


def make_span(kind: str | None, attributes: dict[str, Any] | None = None, **fields: Any) -> Span:
    said = {} if kind is None else {"langsmith.span.kind": kind}
    return Span(**{"trace_id": "a" * 32, "span_id": "b" * 16, "attributes": {**said, **(attributes or {})}, **fields})


def run(kind: str, inputs: Any = None, outputs: Any = None, fields: Any = None, **metadata: Any) -> Reading:
    said = {f"langsmith.metadata.{name}": value for name, value in metadata.items()}
    content = {"gen_ai.prompt": inputs, "gen_ai.completion": outputs}
    said |= {name: json.dumps(value) for name, value in content.items() if value is not None}
    reading = read(make_span(kind, said, **(fields or {})))
    assert reading is not None
    return reading


def raised(message: str) -> dict[str, Any]:
    said = {"exception.type": "Exception", "exception.message": message}
    return {"events": (SpanEvent(name="exception", attributes=said),)}


def test_read_leaves_spans_without_its_attributes():
    assert read(make_span(None, {"gen_ai.prompt": "{}", "gen_ai.operation.name": "chat"})) is None


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("llm", "model"),
        ("LLM", "model"),
        ("tool", "tool"),
        ("chain", "chain"),
        ("parser", "chain"),
        ("retriever", "retrieval"),
        ("embedding", "embedding"),
    ],
)
def test_read_kind_is_the_spans_kind(said, kind):
    reading = read(make_span(said, {"gen_ai.operation.name": "embeddings"}))

    assert reading is not None
    assert reading.kind == kind


def test_read_kind_is_none_where_the_span_names_none():
    reading = read(make_span(None, {"langsmith.metadata.user_id": "u-1", "gen_ai.operation.name": "chat"}))

    assert reading is not None
    assert (reading.kind, reading.user_id, reading.used) == (None, "u-1", frozenset({"langsmith.metadata.user_id"}))


def test_read_chain_that_bears_the_agents_name_is_the_agent():
    assert run("chain", fields={"name": "helper"}, lc_agent_name="helper").kind == "agent"
    assert run("chain", fields={"name": "tools"}, lc_agent_name="helper").kind == "chain"


def test_read_project_is_no_session():
    reading = read(make_span("chain", {"langsmith.trace.session_name": "shop"}))

    assert reading is not None
    assert reading.session_id is None


@pytest.mark.parametrize("name", ["session_id", "conversation_id", "thread_id"])
def test_read_session_is_in_the_metadata(name):
    assert run("chain", **{name: "s-1"}).session_id == "s-1"


def test_read_model_call_of_openai():
    reading = run(
        "llm",
        {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            "model": "gpt-4o",
            "seed": 7,
            "tools": [{"type": "function", "function": {"name": "find"}}],
        },
        {
            "id": "chatcmpl-1",
            "model": "gpt-4o-2024",
            "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}],
            "usage_metadata": {"input_tokens": 20, "output_tokens": 3, "input_token_details": {"cache_read": 12}},
        },
        ls_provider="openai",
        ls_temperature=0.2,
        ls_invocation_params='{"top_p": 0.9, "stream_options": {}}',
    )

    assert reading.messages == (
        ChatMessage(role="system", parts=(TextPart(text="Be brief."),)),
        ChatMessage(role="user", parts=(TextPart(text="Hi"),)),
    )
    assert reading.answer == ChatMessage(role="assistant", parts=(TextPart(text="Hello."),))
    assert reading.tools == (ToolDefinition(name="find"),)
    assert (reading.model, reading.answered_model, reading.provider) == ("gpt-4o", "gpt-4o-2024", "openai")
    assert (reading.response_id, reading.finish_reason) == ("chatcmpl-1", "stop")
    assert reading.settings == {"temperature": 0.2, "top_p": 0.9, "seed": 7}
    assert (reading.input_tokens, reading.output_tokens) == (20, 3)


def langchain(name: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


def test_read_model_call_of_langchain():
    call = {"name": "find", "args": {"a": 1}, "id": "c1", "type": "tool_call"}
    answer = langchain("AIMessage", content="", tool_calls=[call], response_metadata={"finish_reason": "tool_calls"})
    reading = run(
        "llm",
        {"messages": [[langchain("SystemMessage", content="Be brief."), langchain("HumanMessage", content="Hi")]]},
        {"generations": [[{"text": "", "message": answer}]]},
        ls_max_tokens=400,
        max_completion_tokens=400,
        seed=7,
        langgraph_node="model",
        lc_versions='{"langchain-core": "1.7"}',
    )

    assert reading.messages is not None
    assert [message.role for message in reading.messages] == ["system", "user"]
    assert reading.answer is not None
    assert reading.answer.parts == (CallPart(tool_name="find", call_id="c1", arguments={"a": 1}),)
    assert reading.settings == {"seed": 7, "max_completion_tokens": 400}
    assert (reading.framework, reading.framework_version, reading.finish_reason) == ("langgraph", "1.7", "tool_calls")


def test_read_model_call_without_an_answer_has_none():
    reading = run("llm", {"messages": [{"role": "user", "content": "Hi"}]}, {"output": None})

    assert (reading.answer, reading.output, reading.finish_reason, reading.input_tokens) == (None, None, None, None)


@pytest.mark.parametrize(("outputs", "words"), [({"output": "Hello."}, "Hello."), ({"a": 1}, '{"a": 1}')])
def test_read_model_call_of_the_teams_own_making(outputs, words):
    reading = run("llm", {"question": "Hi"}, outputs)

    assert reading.input == {"question": "Hi"}
    assert reading.messages is None
    assert reading.answer == ChatMessage(role="assistant", parts=(TextPart(text=words),))


def test_read_first_token_is_the_event():
    reading = read(make_span("llm", events=(SpanEvent(name="new_token", time_ns=5), SpanEvent(name="new_token"))))

    assert reading is not None
    assert reading.first_token_ns == 5


@pytest.mark.parametrize(
    ("outputs", "result", "has_result"),
    [
        ({"output": [1]}, [1], True),
        ({"a": 1}, {"a": 1}, True),
        ({"output": None}, None, True),
        ({}, None, False),
        ({"output": {"type": "tool", "content": "ok", "tool_call_id": "c1"}}, "ok", True),
    ],
)
def test_read_tool_result(outputs, result, has_result):
    reading = run("tool", {"city": "Oslo"}, outputs, {"name": "weather"})

    assert (reading.tool_name, reading.arguments, reading.has_arguments) == ("weather", {"city": "Oslo"}, True)
    assert (reading.result, reading.has_result) == (result, has_result)


def test_read_tool_that_failed_has_no_result():
    reading = run("tool", {}, {"output": None}, raised(f"BillingError('503 it\\'s down'){TRACEBACK}"))

    assert reading.error == ErrorInfo(type="BillingError", message="503 it's down", extra={"stacktrace": TRACEBACK})
    assert (reading.arguments, reading.has_arguments, reading.has_result) == ({}, True, False)


@pytest.mark.parametrize(
    ("name", "is_harmless"), [("ParentCommand", True), ("GraphInterrupt", True), ("KeyError", False)]
)
def test_read_error_is_harmless_where_it_only_steers(name, is_harmless):
    assert run("chain", fields=raised(f"{name}(Command(goto='b')){TRACEBACK}")).is_error_harmless is is_harmless


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("ValueError('no')\n\n" + TRACEBACK, "ValueError", "no"),
        ('openai.BadRequestError("it\'s 400")', "openai.BadRequestError", "it's 400"),
        ("KeyError('a', 'b')", "KeyError", "'a', 'b'"),
        ("TimeoutError()", "TimeoutError", None),
        ("it went wrong (again)", None, "it went wrong (again)"),
        ("", None, None),
    ],
)
def test_error_in_a_text(text, kind, message):
    error = error_in(text)

    assert (error.type, error.message) == (kind, message)


def test_read_retriever_gives_documents():
    found = {"documents": [{"id": "m-1", "page_content": "Hold it.", "metadata": {"page": 3}}]}
    reading = run("retriever", {"query": "reset"}, found)

    assert reading.query == "reset"
    assert reading.chunks == (RetrievedChunk(chunk_id="m-1", content="Hold it.", extra={"metadata": {"page": 3}}),)
    assert run("retriever", {"query": "reset"}, {"output": []}).chunks == ()
    assert run("retriever", {"query": "reset"}).chunks is None


def test_read_run_gives_words_and_conversation():
    messages = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello."}]
    reading = run("chain", {"messages": messages[:1]}, {"messages": messages})
    inside = run("chain", {"messages": messages[:1]}, {"messages": messages}, {"parent_id": "c" * 16})

    assert (reading.input, reading.output) == ("Hi", "Hello.")
    assert reading.conversation is not None
    assert inside.input == {"messages": messages[:1]}
    assert inside.conversation is None


def test_read_names_what_it_understood_and_leaves_the_rest():
    reading = run("chain", {"prompt": "Hi"}, turn=1, user_id="u-1")

    assert reading.used == {"langsmith.span.kind", "gen_ai.prompt", "langsmith.metadata.user_id"}


@given(st.dictionaries(st.sampled_from(NAMES), VALUES), st.sampled_from(["llm", "tool", "chain", "retriever"]))
def test_read_never_raises(attributes, kind):
    reading = read(make_span(kind, attributes))

    assert reading is not None


@given(st.text())
def test_error_in_never_raises(text):
    error = error_in(text)

    assert error.type is None or error.type in text
