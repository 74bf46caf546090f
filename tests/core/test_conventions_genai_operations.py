"""The GenAI conventions: requests, runs of tools, searches, and spans around a whole run."""

import json

import pytest

from sessions_app.core.conventions.genai.span import read
from sessions_app.core.spans.reading import ChatMessage, Reading, RetrievedChunk, TextPart, ToolDefinition
from sessions_app.core.spans.span import Attributes, Span, SpanEvent

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
SECOND = 1_000_000_000


def reading_of(operation: str, attributes: Attributes, **fields: object) -> Reading:
    span = Span(
        trace_id="1" * 32,
        span_id="2" * 16,
        attributes={"gen_ai.operation.name": operation, **attributes},
        **fields,  # type: ignore[arg-type]
    )
    reading = read(span)
    assert reading is not None
    return reading


def event(name: str, **attributes: object) -> SpanEvent:
    return SpanEvent(name=name, attributes=attributes)


def says(role: str, text: str) -> ChatMessage:
    return ChatMessage(role=role, parts=(TextPart(text=text),))  # type: ignore[arg-type]


# --- requests -------------------------------------------------------------------------------------


def test_request_and_response_are_read():
    reading = reading_of(
        "chat",
        {
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "m",
            "gen_ai.request.temperature": 0.2,
            "gen_ai.request.stop_sequences": ["END"],
            "gen_ai.openai.request.seed": 7,
            "http.request.method": "POST",
            "gen_ai.response.model": "m-2025",
            "gen_ai.response.id": "r-1",
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.usage.input_tokens": 240,
            "gen_ai.usage.output_tokens": 17,
        },
    )

    assert (reading.provider, reading.model, reading.answered_model) == ("openai", "m", "m-2025")
    assert (reading.response_id, reading.finish_reason) == ("r-1", "stop")
    assert reading.settings == {"temperature": 0.2, "stop_sequences": ["END"], "seed": 7}
    assert (reading.input_tokens, reading.output_tokens) == (240, 17)


@pytest.mark.parametrize("said", [["stop", "length"], '["stop"]', "stop", '"stop"'])
def test_finish_reason_is_read_in_every_spelling(said):
    assert reading_of("chat", {"gen_ai.response.finish_reasons": said}).finish_reason == "stop"


def test_arguments_of_the_call_under_their_own_names_are_settings():
    reading = reading_of("chat", {"gen_ai.request.model": "m-2025", "model": '"m"', "seed": "7", "colour": "red"})

    assert (reading.model, reading.settings) == ("m", {"seed": 7})


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 240, "cache_read.input_tokens": 128}, 240),
        ({"input_tokens": 12, "cache_read.input_tokens": 128, "cache_creation.input_tokens": 5}, 145),
        ({"prompt_tokens": 30}, 30),
        ({"input_tokens": -1}, None),
    ],
)
def test_input_tokens_hold_those_of_the_cache(usage, tokens):
    said = {f"gen_ai.usage.{name}": count for name, count in usage.items()}

    assert reading_of("chat", said).input_tokens == tokens


def test_usage_of_an_agent_is_a_sum_and_not_read():
    reading = reading_of("invoke_agent", {"gen_ai.usage.input_tokens": 654})

    assert reading.input_tokens is None
    assert "gen_ai.usage.input_tokens" not in reading.used


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ({"gen_ai.response.time_to_first_chunk": 0.25}, 1_250_000_000),
        ({"gen_ai.client.operation.time_to_first_chunk": 0.5}, 1_500_000_000),
        ({"gen_ai.server.time_to_first_token": 24}, 1_024_000_000),
        ({"gen_ai.server.time_to_first_token": 0.5}, 1_500_000_000),
        ({"gen_ai.response.time_to_first_chunk": 60.0}, None),
        ({}, None),
    ],
)
def test_first_token_lies_inside_of_the_span(said, first):
    reading = reading_of("chat", said, start_ns=SECOND, end_ns=2 * SECOND)

    assert reading.first_token_ns == first


def test_first_piece_of_a_stream_is_the_first_token():
    pieces = (SpanEvent(name="gen_ai.content.completion.chunk", time_ns=time) for time in (1_100, 1_200))

    assert reading_of("chat", {}, events=tuple(pieces)).first_token_ns == 1_100


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "name": "weather", "description": "Now.", "parameters": SCHEMA},
        {"type": "function", "function": {"name": "weather", "description": "Now.", "parameters": SCHEMA}},
        {"name": "weather", "description": "Now.", "input_schema": SCHEMA},
        {"type": "function", "name": "weather", "description": "Now.", "inputSchema": SCHEMA},
        {"name": "weather", "description": "Now.", "inputSchema": {"json": SCHEMA}},
    ],
)
def test_tool_definitions_are_read_in_every_spelling(tool):
    reading = reading_of("chat", {"gen_ai.tool.definitions": json.dumps([tool])})

    assert reading.tools == (ToolDefinition(name="weather", description="Now.", parameters=SCHEMA),)


def test_names_of_tools_are_better_than_nothing():
    reading = reading_of("invoke_agent", {"gen_ai.agent.tools": '["weather", "time"]'})

    assert reading.tools == (ToolDefinition(name="weather"), ToolDefinition(name="time"))


def test_request_parameters_hold_tools_and_the_form_of_output():
    asked = {
        "function_tools": [{"name": "weather", "description": "Now.", "parameters_json_schema": SCHEMA}],
        "output_tools": [{"name": "final_result", "parameters_json_schema": SCHEMA}],
        "output_mode": "native",
        "output_object": {"json_schema": SCHEMA},
    }

    reading = reading_of("chat", {"model_request_parameters": json.dumps(asked)})

    assert [tool.name for tool in reading.tools or ()] == ["weather", "final_result"]
    assert reading.settings == {
        "output_mode": "native",
        "output_schema": SCHEMA,
        "output_tools": ["final_result"],
    }


def test_embedding_names_its_model():
    reading = reading_of("embeddings", {"gen_ai.request.model": "small", "gen_ai.usage.input_tokens": 100})

    assert (reading.kind, reading.embedding_model, reading.input_tokens) == ("embedding", "small", 100)


# --- runs of tools --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "result"),
    [("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"), ("tool_arguments", "tool_response")],
)
def test_run_of_a_tool_is_read(arguments, result):
    reading = reading_of(
        "execute_tool",
        {
            "gen_ai.tool.name": "weather",
            "gen_ai.tool.call.id": "c1",
            arguments: '{"city": "Oslo"}',
            result: '{"c": -7}',
        },
    )

    assert (reading.tool_name, reading.call_id) == ("weather", "c1")
    assert (reading.arguments, reading.has_arguments) == ({"city": "Oslo"}, True)
    assert (reading.result, reading.has_result) == ({"c": -7}, True)
    assert {arguments, result} <= reading.used


def test_run_of_a_tool_without_content_has_neither_arguments_nor_result():
    reading = reading_of("execute_tool", {"gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1"})

    assert (reading.has_arguments, reading.has_result) == (False, False)


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("null", None),
        ('"09:30"', "09:30"),
        ("09:30", "09:30"),
        ("42", 42),
        ("19.90", "19.90"),
        ("true", True),
        ("[1, 2", "[1, 2"),
        ('[{"text": "cold"}]', "cold"),
        ('[{"text": "cold"}, {"text": "wet"}]', [{"text": "cold"}, {"text": "wet"}]),
        ([{"id": 1}], [{"id": 1}]),
    ],
)
def test_result_keeps_what_was_said(said, result):
    reading = reading_of("execute_tool", {"gen_ai.tool.name": "weather", "gen_ai.tool.call.result": said})

    assert (reading.result, reading.has_result) == (result, True)


def test_run_of_a_tool_may_be_told_by_events():
    events = (
        event("gen_ai.tool.message", role="tool", content='{"city": "Oslo"}', id="c1"),
        event("gen_ai.choice", message='[{"text": "{\\"c\\": -7}"}]', id="c1"),
    )

    reading = reading_of("execute_tool", {"gen_ai.tool.name": "weather"}, events=events)

    assert (reading.arguments, reading.result) == ({"city": "Oslo"}, '{"c": -7}')


def test_run_of_a_tool_may_be_told_by_messages():
    call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Oslo"}}
    result = {"type": "tool_call_response", "id": "c1", "response": [{"text": "cold"}]}

    reading = reading_of(
        "execute_tool",
        {
            "gen_ai.tool.name": "weather",
            "gen_ai.input.messages": json.dumps([{"role": "tool", "parts": [call]}]),
            "gen_ai.output.messages": json.dumps([{"role": "tool", "parts": [result]}]),
        },
    )

    assert (reading.arguments, reading.result) == ({"city": "Oslo"}, "cold")


def test_callbacks_wrapping_is_taken_off():
    message = {
        "lc": 1,
        "id": ["langchain", "schema", "messages", "ToolMessage"],
        "kwargs": {"content": "cold", "tool_call_id": "c1"},
    }
    began = {"input_str": "{'city': 'Oslo'}", "inputs": {"city": "Oslo"}, "kwargs": {"tool_call_id": "c1"}}
    said = {"gen_ai.tool.name": "weather", "gen_ai.tool.call.arguments": json.dumps(began)}

    whole = reading_of("execute_tool", {**said, "gen_ai.tool.call.result": json.dumps({"output": message})})
    other = reading_of("execute_tool", {**said, "gen_ai.tool.call.result": json.dumps({"output": {"goto": "x"}})})
    plain = reading_of("execute_tool", {"gen_ai.tool.call.result": json.dumps({"output": message})})

    assert (whole.call_id, whole.arguments, whole.result) == ("c1", {"city": "Oslo"}, "cold")
    assert other.result == {"goto": "x"}
    assert plain.result == {"output": message}


def test_tools_own_span_describes_it():
    said = {"gen_ai.tool.name": "weather", "gen_ai.tool.description": "Now."}

    full = reading_of("execute_tool", {**said, "gen_ai.tool.json_schema": json.dumps(SCHEMA)})
    bare = reading_of("execute_tool", {"gen_ai.tool.name": "weather"})

    assert full.tools == (ToolDefinition(name="weather", description="Now.", parameters=SCHEMA),)
    assert bare.tools is None


# --- searches -------------------------------------------------------------------------------------


def test_documents_of_a_retrieval_are_read():
    documents = [{"id": "d1", "score": 0.9, "content": "Hold the button.", "page": 12}, "Loose words."]

    reading = reading_of(
        "retrieval",
        {"gen_ai.retrieval.query.text": "reset", "gen_ai.retrieval.documents": json.dumps(documents)},
    )

    assert reading.query == "reset"
    assert reading.chunks == (
        RetrievedChunk(chunk_id="d1", score=0.9, content="Hold the button.", extra={"page": 12}),
        RetrievedChunk(content="Loose words."),
    )


@pytest.mark.parametrize(("said", "chunks"), [("[]", ()), ("[1]", None), ("words", None), ('{"a": 1}', None)])
def test_documents_that_are_none_are_told_from_an_empty_list(said, chunks):
    assert reading_of("retrieval", {"gen_ai.retrieval.documents": said}).chunks == chunks


def test_task_that_retrieved_documents_is_read():
    document = {"page_content": "Hold the button.", "metadata": {"title": "Manual"}}

    reading = reading_of(
        "vector_db_retrieve",
        {
            "gen_ai.task.input": json.dumps({"query": "reset", "tags": []}),
            "gen_ai.task.output": json.dumps({"documents": [document], "count": 1}),
        },
    )

    assert reading.query == "reset"
    assert reading.chunks == (RetrievedChunk(content="Hold the button.", extra={"metadata": {"title": "Manual"}}),)


def test_events_of_a_vector_store_are_chunks():
    found = event("db.query.result", **{"db.query.result.id": "d1", "db.query.result.document": "Hold the button."})

    assert reading_of("retrieval", {}, events=(found,)).chunks == (
        RetrievedChunk(chunk_id="d1", content="Hold the button."),
    )


# --- around a whole run ---------------------------------------------------------------------------

EARLIER = [
    {"role": "user", "parts": [{"type": "text", "content": "First?"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "One."}]},
]
NEW = [
    {"role": "user", "parts": [{"type": "text", "content": "Second?"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "Two."}]},
]


def test_agent_carries_its_conversation():
    said = {"pydantic_ai.all_messages": json.dumps(EARLIER + NEW), "final_result": '{"answer": 2}'}

    reading = reading_of("invoke_agent", {**said, "pydantic_ai.new_message_index": 2})
    fresh = reading_of("invoke_agent", said)

    assert reading.conversation == (
        says("user", "First?"),
        says("assistant", "One."),
        says("user", "Second?"),
        says("assistant", "Two."),
    )
    assert (reading.input, reading.output) == ("Second?", {"answer": 2})
    assert fresh.input == "First?"


def test_agent_carries_its_conversation_as_events():
    listed = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Second?"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "19.90"},
    ]

    reading = reading_of("invoke_agent", {"all_messages_events": json.dumps(listed), "final_result": "19.90"})

    assert reading.conversation == (says("user", "Second?"), says("assistant", "19.90"))
    assert (reading.input, reading.output) == ("Second?", "19.90")


def test_agents_messages_are_its_conversation():
    reading = reading_of(
        "invoke_agent",
        {"gen_ai.input.messages": json.dumps([NEW[0]]), "gen_ai.output.messages": json.dumps([NEW[1]])},
    )

    assert (reading.messages, reading.answer) == (None, None)
    assert reading.conversation == (says("user", "Second?"), says("assistant", "Two."))
    assert (reading.input, reading.output) == ("Second?", "Two.")


def test_output_that_sums_up_a_run_is_no_conversation():
    result = {"type": "tool_call_response", "id": "c1", "response": "cold"}
    summed = [{"role": "assistant", "parts": [{"type": "text", "content": "Two."}, result]}]

    reading = reading_of(
        "invoke_agent",
        {"gen_ai.input.messages": json.dumps([NEW[0]]), "gen_ai.output.messages": json.dumps(summed)},
    )

    assert reading.conversation is None
    assert (reading.input, reading.output) == ("Second?", "Two.")


def test_agent_is_told_by_events():
    events = (
        event("gen_ai.user.message", content='[{"text": "Second?"}]'),
        event("gen_ai.choice", message="Two.", finish_reason="end_turn"),
    )

    reading = reading_of("invoke_agent", {}, events=events)

    assert reading.conversation == (says("user", "Second?"), says("assistant", "Two."))
    assert (reading.input, reading.output) == ("Second?", "Two.")


def test_states_of_a_graph_hold_an_agents_words():
    def state(*messages: tuple[str, str]) -> list[dict[str, str]]:
        return [{"role": role, "content": content} for role, content in messages]

    said = {
        "gen_ai.task.input": json.dumps({"inputs": {"messages": state(("user", "Second?"))}, "tags": []}),
        "gen_ai.task.output": json.dumps({"outputs": {"messages": state(("user", "Second?"), ("ai", "Two."))}}),
    }

    agent = reading_of("invoke_agent", said)
    task = reading_of("execute_task", {**said, "gen_ai.task.name": "model"})

    assert (agent.input, agent.output) == ("Second?", "Two.")
    assert agent.conversation == (says("user", "Second?"), says("assistant", "Two."))
    assert (task.kind, task.name, task.conversation) == ("chain", "model", None)
    assert task.input == {"messages": state(("user", "Second?"))}


def test_handoff_names_both_agents():
    reading = reading_of("handoff", {"gen_ai.handoff.from_agent": "triage", "gen_ai.handoff.to_agent": "billing"})

    assert (reading.kind, reading.name) == ("handoff", "billing")
    assert reading.input == {"from_agent": "triage", "to_agent": "billing"}


def test_a_word_of_its_own_for_running_a_tool_is_a_tool():
    said = {"gen_ai.operation.name": "tool.run", "gen_ai.tool.name": "lookup"}

    ran = read(Span(trace_id="ab" * 16, span_id="cd" * 8, attributes={**said, "gen_ai.tool.call.result": "x"}))
    named = read(Span(trace_id="ab" * 16, span_id="cd" * 8, attributes=said))

    assert (ran.kind, named.kind) == ("tool", "chain")
