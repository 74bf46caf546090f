"""What the live model of samplings is sent, and what is made of its answers. Pydantic AI itself is the measure."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from sessions_app.agents.live_model.bodies import chat_body, settings_not_sent
from sessions_app.agents.live_model.client import LiveModelClient
from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.agents.loop.library import load_parameters, load_response
from sessions_app.core.payload import Payload
from tests import fake_provider as fake
from tests.builders import RECORDS
from tests.fake_provider import KEY, PROMPT, ask, fake_provider, make_endpoint, refusal, says
from tests.recorder.local_server import Answer

# --- what is sent ------------------------------------------------------------------------------


async def sent_by_the_library(url: str, messages: Any, parameters: Any, settings: Any) -> None:
    provider = OpenAIProvider(base_url=url, api_key="x")
    # It may also say what its own tags mean, as a message of the system; we leave that to it.
    model = OpenAIChatModel("gpt-4o", provider=provider, settings={"framing_announcement": "never"})
    history = ModelMessagesTypeAdapter.validate_json(json.dumps(messages))
    await model.request(model.prepare_messages(history), settings, parameters or ModelRequestParameters())
    await provider.client.close()


def library_body(messages: Any, parameters: Any = None, settings: Any = None) -> dict[str, Any]:
    """What Pydantic AI itself would send."""
    with fake_provider(says("ok")) as provider:
        asyncio.run(sent_by_the_library(provider.url, messages, parameters, settings))
        return provider.bodies[-1]


def requests_of(path: Path) -> Iterator[list[dict[str, Any]]]:
    """The messages of each request of a recording, without thoughts: these are not sent."""
    messages = json.loads(path.read_bytes())
    for message in messages:
        message["parts"] = [part for part in message["parts"] if part["part_kind"] != "thinking"]
    for number, message in enumerate(messages, start=1):
        if message["kind"] == "request" and message["parts"]:
            yield messages[:number]


RECORDED = [path for path in sorted(RECORDS.glob("*.messages.json")) if "multimodal" not in path.name]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_messages_are_those_that_the_library_would_send(path: Path):
    for messages in requests_of(path):
        ours = chat_body(messages, None, model="gpt-4o", settings=None)

        assert ours["messages"] == library_body(messages)["messages"]


def request(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": list(parts), **fields}


def response(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "response", "parts": list(parts)}


def user(content: Any) -> dict[str, Any]:
    return {"part_kind": "user-prompt", "content": content}


def called(args: Any) -> dict[str, Any]:
    return {"part_kind": "tool-call", "tool_name": "look", "args": args, "tool_call_id": "c1"}


def returned(content: Any, outcome: str = "success") -> dict[str, Any]:
    named = {"part_kind": "tool-return", "tool_name": "look", "tool_call_id": "c1"}
    return {**named, "content": content, "outcome": outcome}


SYSTEM = {"part_kind": "system-prompt", "content": "Be brief."}
TEXT = {"part_kind": "text", "content": "One."}


@pytest.mark.parametrize("outcome", ["success", "failed", "denied", "interrupted", "retried"])
@pytest.mark.parametrize("content", ["gone", "", None, {"a": [1, "é"]}, [1, 2], 3.5, True])
def test_answers_of_tools_are_told_as_the_library_tells_them(content, outcome):
    messages = [request(user("Hi")), response(called({"id": 1})), request(returned(content, outcome))]

    assert chat_body(messages, None, model="m", settings=None)["messages"] == library_body(messages)["messages"]


@pytest.mark.parametrize("args", ['{"id": 1}', '{ "id":1 }', {"id": "é"}, {}, "", None, "[1]", '{"id"', "NaN"])
def test_arguments_are_sent_as_the_library_sends_them(args):
    messages = [request(user("Hi")), response(TEXT, called(args)), request(returned("x"))]

    assert chat_body(messages, None, model="m", settings=None)["messages"] == library_body(messages)["messages"]


VALUE_ERRORS = [
    {"type": "missing", "loc": ["a"], "msg": "Field required", "input": {"b": 1}},
    {"type": "missing", "loc": ["c"], "msg": "Field required", "input": {"b": 1}},
    {"type": "int_type", "loc": ["d"], "msg": "No integer", "input": "x"},
    {"type": "int_type", "loc": ["e", 0], "msg": "No integer", "input": {"b": 1}},
]


def feedback(content: Any, cause: str) -> dict[str, Any]:
    return {"part_kind": "retry-feedback", "content": content, "retry": {"cause": cause}}


@pytest.mark.parametrize(
    "part",
    [
        feedback(VALUE_ERRORS, "validation_error"),
        feedback("Too long.", "model_retry"),
        {"part_kind": "retry-prompt", "content": VALUE_ERRORS},
        {"part_kind": "retry-prompt", "content": "Too long."},
    ],
)
def test_feedback_is_told_as_the_library_tells_it(part):
    messages = [request(user("Hi")), response(TEXT), request(part)]

    assert chat_body(messages, None, model="m", settings=None)["messages"] == library_body(messages)["messages"]


def test_the_feedback_that_nothing_came_is_the_users():
    messages = [request(user("Hi")), response(), request(feedback("Please return text.", "no_output"))]

    sent = chat_body(messages, None, model="m", settings=None)["messages"]

    assert sent[-1] == {"role": "user", "content": "Please return text."}


@pytest.mark.parametrize(
    "messages",
    [
        [request(SYSTEM, user("Hi"), instructions="Answer in French.")],
        [request(user("Hi"), instructions="Old."), response(TEXT, TEXT), request(user("Ho"), instructions="New.")],
        [request(user("Hi"), instructions="Old."), response(TEXT), request(user("Ho"))],
        [request(user(["Hi", {"kind": "text-content", "content": "Ho"}, {"kind": "cache-point", "ttl": "5m"}]))],
        [request(user("Hi")), response(), request(user("Ho"))],
    ],
)
def test_prompts_are_sent_as_the_library_sends_them(messages):
    assert chat_body(messages, None, model="m", settings=None)["messages"] == library_body(messages)["messages"]


def test_thoughts_are_not_sent():
    thought = {"part_kind": "thinking", "content": "Hm."}

    body = chat_body([request(user("Hi")), response(thought, TEXT)], None, model="m", settings=None)

    assert body["messages"][-1] == {"role": "assistant", "content": "One."}


FILE = {"kind": "binary", "data": "aGk=", "media_type": "image/png"}
LINK = {"kind": "image-url", "url": "https://example.com/box.jpg"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (json.loads((RECORDS / "multimodal.messages.json").read_bytes())[:1], "a file"),
        ([request(user(["Look", FILE]))], "a file"),
        ([request(user([LINK]))], "a file"),
        ([request(user("Hi")), response(called({})), request(returned({"photo": [FILE]}))], "a file"),
        ([request(user("Hi")), response({"part_kind": "file", "content": FILE})], "a file"),
        ([request(user("Hi")), response({"part_kind": "builtin-tool-call", "tool_name": "web"})], "at the provider"),
        ([request({"part_kind": "instruction-delta"})], "no word for"),
    ],
)
def test_what_a_chat_cannot_say_is_refused_before_anything_is_sent(messages, words):
    with fake_provider(says("ok")) as provider:
        assert words in refusal(provider, messages)
        assert provider.requests == 0


def tool(name: str, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    return {"name": name, "description": f"The {name}.", "parameters_json_schema": schema, **fields}


OUTPUT_TOOL = tool("final_result", kind="output")
OUTPUT_OBJECT = {"json_schema": tool("x")["parameters_json_schema"], "name": "verdict", "description": "A verdict."}


@pytest.mark.parametrize(
    "parameters",
    [
        {"function_tools": [tool("look"), tool("refund", kind="unapproved")]},
        {"function_tools": [tool("look"), tool("hidden", defer_loading=True)]},
        {
            "function_tools": [tool("look")],
            "output_tools": [OUTPUT_TOOL],
            "output_mode": "tool",
            "allow_text_output": False,
        },
        {"output_tools": [OUTPUT_TOOL], "output_mode": "tool", "allow_text_output": True},
        {"output_tools": [OUTPUT_TOOL], "output_object": OUTPUT_OBJECT, "output_mode": "auto"},
        {"output_object": OUTPUT_OBJECT, "output_mode": "native", "function_tools": [tool("look")]},
    ],
)
def test_tools_and_output_are_asked_for_as_the_library_does(parameters):
    ours = chat_body(PROMPT, parameters, model="m", settings=None)
    theirs = library_body(PROMPT, load_parameters(parameters))

    assert asked_for(ours) == asked_for(theirs)


def asked_for(body: dict[str, Any]) -> Any:
    tools = [(tool["function"]["name"], tool["function"]["description"]) for tool in body.get("tools", [])]
    output = body.get("response_format", {"type": "text"})
    return tools, body.get("tool_choice", "auto"), output["type"], output.get("json_schema", {}).get("name")


def test_tools_carry_their_recorded_schema():
    body = chat_body(PROMPT, {"function_tools": [tool("look")]}, model="m", settings=None)

    assert body["tools"][0]["function"]["parameters"] == tool("look")["parameters_json_schema"]


def test_output_that_is_asked_for_in_words_comes_with_its_schema():
    parameters = {
        "output_mode": "prompted",
        "output_object": OUTPUT_OBJECT,
        "prompted_output_template": "JSON {schema}",
    }

    body = chat_body([request(user("Hi"), instructions="Be brief.")], parameters, model="m", settings=None)

    assert body["messages"][0]["content"].startswith('Be brief.\n\nJSON {"type":"object"')


def test_a_tool_that_runs_at_the_provider_is_refused():
    with pytest.raises(ModelUnavailable, match="at the provider"):
        chat_body(PROMPT, {"native_tools": [{"kind": "web_search"}]}, model="m", settings=None)


def test_settings_that_every_provider_knows_are_sent_and_others_named():
    settings = {
        **{"temperature": 0.2, "top_p": 0.9, "max_tokens": 50, "seed": 7, "stop_sequences": ["END"]},
        **{"presence_penalty": 0.1, "frequency_penalty": 0.2, "parallel_tool_calls": False},
    }
    parameters = {"function_tools": [tool("look")]}
    names = {"temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty", "parallel_tool_calls"}

    ours = chat_body(PROMPT, parameters, model="m", settings={**settings, "openai_logprobs": True, "timeout": None})
    theirs = library_body(PROMPT, load_parameters(parameters), settings)

    assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}
    assert ours["max_tokens"] == 50
    assert not {"openai_logprobs", "timeout"} & set(ours)
    assert settings_not_sent({**settings, "openai_logprobs": True, "timeout": None}) == ["openai_logprobs"]


def test_the_answer_names_the_settings_that_were_not_sent():
    with fake_provider(says("No.")) as provider:
        client = LiveModelClient(make_endpoint(provider.url))

        answer = client.answer(PROMPT, None, model="gpt-4o", settings={"top_k": 3, "seed": 1})

    assert answer["metadata"] == {"settings_not_sent": ["top_k"]}
    assert provider.bodies == [{"model": "gpt-4o", "messages": [{"role": "user", "content": "Is it late?"}], "seed": 1}]


def test_the_settings_of_the_server_decide_where_and_as_what_it_is_asked():
    with fake_provider(says("No.")) as provider:
        ask(provider, model="local-7b")

        received = provider.server.received[0]
        assert (received.path, received.headers["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
        assert provider.bodies[0]["model"] == "local-7b"


def test_without_a_key_none_is_sent():
    with fake_provider(says("No.")) as provider:
        ask(provider, key="")

        assert "Authorization" not in provider.server.received[0].headers


def test_a_request_without_any_model_is_refused():
    with fake_provider(says("No.")) as provider, pytest.raises(ModelUnavailable, match="names no model"):
        LiveModelClient(make_endpoint(provider.url)).answer(PROMPT, None, model=None)


# --- what is made of answers -------------------------------------------------------------------


def test_a_text_becomes_a_response_as_it_would_be_recorded():
    with fake_provider(says("No.", reasoning_content="The date.")) as provider:
        answer = ask(provider)

    loaded = load_response(Payload.of_json(answer))
    assert [(part.part_kind, part.content) for part in loaded.parts] == [("thinking", "The date."), ("text", "No.")]
    assert (loaded.model_name, loaded.finish_reason, loaded.provider_response_id) == ("fake-1", "stop", "chatcmpl-1")
    assert (loaded.usage.input_tokens, loaded.usage.output_tokens) == (12, 3)
    assert loaded.timestamp.tzinfo is not None


def test_tool_calls_become_parts_with_their_ids_and_arguments():
    with fake_provider(fake.calls("look", {"id": 7})) as provider:
        loaded = load_response(Payload.of_json(ask(provider)))

    [part] = loaded.parts
    assert (part.tool_name, part.args_as_dict(), part.tool_call_id) == ("look", {"id": 7}, "call_live_1")
    assert loaded.finish_reason == "tool_call"


def test_a_call_without_an_id_gets_one():
    call = {"function": {"name": "look", "arguments": "{}"}}
    with fake_provider(fake.of_json({"choices": [{"message": {"tool_calls": [call, call]}}]})) as provider:
        ids = {part["tool_call_id"] for part in ask(provider)["parts"]}

    assert len(ids) == 2


def test_a_refusal_of_the_model_is_an_answer_without_parts():
    with fake_provider(says("", refusal="I may not.")) as provider:
        answer = load_response(Payload.of_json(ask(provider)))

    assert (answer.parts, answer.finish_reason, answer.provider_details) == (
        [],
        "content_filter",
        {"refusal": "I may not."},
    )


def completion(**message: Any) -> Answer:
    return fake.of_json({"choices": [{"message": message}]})


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"<html>Welcome to the proxy</html>"),
        Answer(body=b""),
        Answer(body=b'{"choices": [{"message": {"content": "half'),
        Answer(body=b"[" * 100_000),
        Answer(body=b'{"choices": [{"message": {"content": "\\ud800"}}]}'),
        Answer(body=b'{"choices": [{"message": {"content": "a"}}], "x": NaN}'),
        fake.of_json({"error": {"message": KEY}}),
        fake.of_json({"choices": []}),
        fake.of_json({"choices": "many"}),
        fake.of_json([1]),
        completion(content={"text": "a"}),
        completion(tool_calls=[{"function": {"name": 3, "arguments": "{}"}}]),
        completion(tool_calls=[{"function": {"name": "look", "arguments": 3}}]),
        completion(tool_calls=["look"]),
    ],
)
def test_an_answer_of_another_shape_is_a_clear_error(answer):
    with fake_provider(answer) as provider:
        assert refusal(provider).startswith("Its answer is")


def test_tokens_that_are_no_counts_are_left_out():
    usage = {"prompt_tokens": -3, "completion_tokens": "12", "prompt_tokens_details": {"cached_tokens": 4}}
    with fake_provider(fake.of_json({"choices": [{"message": {"content": "a"}}], "usage": usage})) as provider:
        assert ask(provider)["usage"] == {"cache_read_tokens": 4}
