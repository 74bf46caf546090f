"""The OpenAI Agents SDK with its own models, against a server that speaks both protocols."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner
from openai import AsyncOpenAI

from tests.recorder.local_server import Answer, LocalServer, local_server
from tests.recorder.openai_playing import WAYS, Record, lookup, one_record, steps_of
from tests.recorder.replaying import assert_promise_kept, verdict_of

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
CALL = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"order": "A"}'}}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with local_server() as server:
        yield server


def played(way: str, model: Any, server: LocalServer, **options: Any) -> Record:
    async def play() -> None:
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="sk-secret", **options) as client:
            asking = Agent("Support", instructions="Be kind.", model=model("gpt-4o", client), tools=[lookup])
            await WAYS[way](asking)

    return one_record(play, http=True)


def answer(document: Any) -> Answer:
    return Answer(json.dumps(document).encode(), headers={"Content-Type": "application/json"})


def events(*events: dict[str, Any]) -> Answer:
    """As a stream of server-sent events; those of the Responses API carry their names."""
    lines = [
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n" for event in events
    ]
    body = "".join([*lines, "data: [DONE]\n\n"])
    return Answer(body.encode(), headers={"Content-Type": "text/event-stream"})


# --- chat completions --------------------------------------------------------------------------


def completion(message: dict[str, Any], finish_reason: str) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", **message}}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "gpt-4o-2026-08",
        "choices": [choice],
        "usage": USAGE,
    }


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "gpt-4o-2026-08",
        "choices": [choice],
    }


def test_chat_completions_are_recorded_and_reproduced(server: LocalServer):
    server.answer(
        CHAT,
        answer(completion({"content": None, "tool_calls": [CALL]}, "tool_calls")),
        answer(completion({"content": "It has shipped."}, "stop")),
    )

    record = played("run", OpenAIChatCompletionsModel, server)

    facts = [
        (step["model"], step["answered_model"], step["provider"], step["finish_reason"], step["input_tokens"])
        for step in steps_of(record, "model")
    ]
    assert facts == [
        ("gpt-4o", "gpt-4o-2026-08", "openai", "tool_call", 11),
        ("gpt-4o", "gpt-4o-2026-08", "openai", "stop", 11),
    ]
    assert (record["model"], record["provider"]) == ("gpt-4o", "openai")
    # The protocol gives no ids to items; the SDK's made-up one is not taken for one.
    assert record["steps"][2]["response"]["parts"] == [{"part_kind": "text", "content": "It has shipped."}]
    assert record["steps"][2]["response"]["provider_url"] == f"{server.url}/v1/"
    assert verdict_of(record) == ("reproduced", None, None)


def test_the_exchange_stands_on_the_model_step(server: LocalServer):
    server.answer(CHAT, answer(completion({"content": "Hi."}, "stop")))

    record = played("run", OpenAIChatCompletionsModel, server)

    (step,) = record["steps"]
    assert (step["http"]["method"], step["http"]["status"]) == ("POST", 200)
    sent = json.loads(step["http"]["request_body"])
    assert [message["content"] for message in sent["messages"]] == ["Be kind.", "Where is it?"]
    assert json.loads(step["http"]["response_body"])["id"] == "chatcmpl-1"
    assert "sk-secret" not in json.dumps(record)


def test_what_the_client_repeats_stands_below_the_model_step(server: LocalServer):
    server.answer(CHAT, Answer(status=503), answer(completion({"content": "Hi."}, "stop")))

    record = played("run", OpenAIChatCompletionsModel, server, max_retries=1)

    first, second = record["steps"]
    assert (first["kind"], first["http"]["status"], "failed_attempts" in first) == ("model", 200, False)
    assert (second["kind"], second["parent"], second["http"]["status"]) == ("other", 1, 503)
    assert verdict_of(record) == ("reproduced", None, None)


@pytest.mark.parametrize("way", WAYS)
def test_an_error_of_the_provider_is_that_of_the_step(way: str, server: LocalServer):
    server.answer(CHAT, Answer(b'{"error": {"message": "slow down"}}', status=429))

    record = played(way, OpenAIChatCompletionsModel, server, max_retries=0)

    (step,) = record["steps"]
    assert step["error"]["type"] == record["error"]["type"] == "RateLimitError"
    assert "slow down" in step["error"]["message"]
    assert step["http"]["status"] == 429


def test_streamed_chat_completions_are_recorded_and_reproduced(server: LocalServer):
    called = {"index": 0, "id": "c1", "type": "function", "function": {"name": "lookup", "arguments": ""}}
    rest = {"index": 0, "function": {"arguments": '{"order": "A"}'}}
    server.answer(
        CHAT,
        events(
            chunk({"role": "assistant", "tool_calls": [called]}),
            chunk({"tool_calls": [rest]}),
            chunk({}, "tool_calls"),
            {**chunk({}), "choices": [], "usage": USAGE},
        ),
        events(chunk({"role": "assistant", "content": "It has "}), chunk({"content": "shipped."}), chunk({}, "stop")),
    )

    record = played("run_streamed", OpenAIChatCompletionsModel, server)

    first, tool, second = record["steps"]
    assert (tool["arguments"], record["output"]) == ('{"order": "A"}', "It has shipped.")
    assert first["started_at"] < first["first_token_at"]
    assert second["started_at"] < second["first_token_at"]
    # What the SDK puts together names the model that was asked, which says nothing of the one that answered.
    assert "answered_model" not in first
    assert first["http"]["response_body"].startswith("data: ")
    assert verdict_of(record) == ("reproduced", None, None)


# --- responses ---------------------------------------------------------------------------------


def response(*output: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "resp_7",
        "object": "response",
        "created_at": 0,
        "model": "gpt-4o-2026-08",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 18,
        },
    }


FUNCTION_CALL = {
    "id": "fc_1",
    "type": "function_call",
    "name": "lookup",
    "arguments": '{"order": "A"}',
    "call_id": "c1",
    "status": "completed",
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "It has shipped.", "annotations": []}],
}
DELTA = {
    "type": "response.output_text.delta",
    "sequence_number": 1,
    "item_id": "msg_1",
    "output_index": 0,
    "content_index": 0,
    "delta": "It has shipped.",
    "logprobs": [],
}


def assert_is_the_lookup(record: Record) -> None:
    facts = [
        (step["model"], step["answered_model"], step["provider"], step["finish_reason"], step["output_tokens"])
        for step in steps_of(record, "model")
    ]
    assert facts == [("gpt-4o", "gpt-4o-2026-08", "openai", "stop", 7)] * 2
    assert record["steps"][0]["response"]["provider_response_id"] == "resp_7"
    assert (steps_of(record, "tool")[0]["result"], record["output"]) == ("A has shipped", "It has shipped.")
    assert verdict_of(record) == ("reproduced", None, None)


def test_responses_are_recorded_and_reproduced(server: LocalServer):
    server.answer(RESPONSES, answer(response(FUNCTION_CALL)), answer(response(MESSAGE)))

    record = played("run", OpenAIResponsesModel, server)

    assert_is_the_lookup(record)
    assert json.loads(record["steps"][2]["http"]["request_body"])["input"][2]["output"] == "A has shipped"


def test_streamed_responses_are_recorded_and_reproduced(server: LocalServer):
    def completed(*output: dict[str, Any]) -> dict[str, Any]:
        return {"type": "response.completed", "sequence_number": 2, "response": response(*output)}

    server.answer(RESPONSES, events(completed(FUNCTION_CALL)), events(DELTA, completed(MESSAGE)))

    record = played("run_streamed", OpenAIResponsesModel, server)

    assert_is_the_lookup(record)
    assert "first_token_at" in record["steps"][2]


@pytest.mark.parametrize(("detail", "found"), [("low", []), ("high", [("items_contradicted", 2)])])
def test_the_detail_of_an_image_is_that_of_the_first_request(detail: str, found: Any, server: LocalServer):
    server.answer(RESPONSES, answer(response(MESSAGE)))
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
    asked: Any = [{"role": "user", "content": [{"type": "input_text", "text": "Whose?"}, image]}]

    async def play() -> None:
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="sk-secret") as client:
            asking = Agent("Support", model=OpenAIResponsesModel("gpt-4o", client))
            await Runner.run(asking, asked)

    record = one_record(play, http=True)
    record["input_items"][0]["content"][1]["detail"] = detail

    judged = assert_promise_kept(json.dumps(record).encode())
    assert [(reason.code, reason.step) for reason in judged.reasons] == found
