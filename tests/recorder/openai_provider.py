"""A provider on this machine that speaks both protocols of OpenAI, streamed or not, and answers by script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel
from openai import AsyncOpenAI

from tests.recorder.local_server import Answer, LocalServer, local_server

Json = dict[str, Any]
_USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 18,
}


@dataclass
class Provider:
    """Answers what comes next in the script, whoever asks. An `Answer` is sent as it is."""

    server: LocalServer
    client: AsyncOpenAI
    script: list[Json | Answer]

    def will_answer(self, *script: Json | Answer) -> None:
        self.script.extend(script)

    @property
    def chat(self) -> OpenAIChatCompletionsModel:
        return OpenAIChatCompletionsModel("gpt-4o", self.client)

    @property
    def responses(self) -> OpenAIResponsesModel:
        return OpenAIResponsesModel("gpt-4o", self.client)

    def _next_answer(self, path: str) -> Answer:
        if not self.script:
            return Answer(b'{"error": {"message": "the script is over"}}', status=400)
        message = self.script.pop(0)
        if isinstance(message, Answer):
            return message
        is_streamed = bool(json.loads(self.server.received[-1].body).get("stream"))
        if path.endswith("/chat/completions"):
            return _events(*_chunks(message)) if is_streamed else _document(_completion(message))
        completed = {"type": "response.completed", "sequence_number": 1, "response": _response(message)}
        return _events(completed) if is_streamed else _document(_response(message))


@contextmanager
def provider() -> Iterator[Provider]:
    with local_server() as server:
        client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="sk-secret", max_retries=0)
        found = Provider(server, client, [])
        server.next_answer = found._next_answer  # type: ignore[method-assign]  # the script is a function here
        yield found


# --- what it answers, for both protocols -------------------------------------------------------


def says(*texts: str) -> Json:
    """Of several texts each is a message of its own; the chat protocol has one."""
    return {"texts": list(texts), "calls": [], "items": []}


def calls(*asked: tuple[str, str, str], text: str | None = None) -> Json:
    """Each call is a name, arguments and an id."""
    return {"texts": [] if text is None else [text], "calls": list(asked), "items": []}


def items(*rows: Json) -> Json:
    """Output items of the Responses API as they are."""
    return {"texts": [], "calls": [], "items": list(rows)}


def refuses(words: str) -> Json:
    return {"texts": [], "calls": [], "items": [], "refusal": words}


def message_item(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def call_item(name: str, arguments: str, call_id: str) -> Json:
    said = {"name": name, "arguments": arguments, "call_id": call_id, "status": "completed"}
    return {"id": f"fc_{call_id}", "type": "function_call", **said}


def _document(value: Json) -> Answer:
    return Answer(json.dumps(value).encode(), headers={"Content-Type": "application/json"})


def _events(*events: Json) -> Answer:
    lines = [
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n" for event in events
    ]
    body = "".join([*lines, "data: [DONE]\n\n"])
    return Answer(body.encode(), headers={"Content-Type": "text/event-stream"})


def _completion(message: Json) -> Json:
    said: Json = {"role": "assistant", "content": "".join(message["texts"]) if message["texts"] else None}
    if message["calls"]:
        said["tool_calls"] = [_chat_call(*call) for call in message["calls"]]
    if "refusal" in message:
        said["refusal"] = message["refusal"]
    return {**_chat("chat.completion", message, {"message": said}), "usage": _chat_usage()}


def _chunks(message: Json) -> Iterator[Json]:
    for text in message["texts"]:
        yield _chat("chat.completion.chunk", None, {"delta": {"role": "assistant", "content": text}})
    for index, call in enumerate(message["calls"]):
        delta = {"role": "assistant", "tool_calls": [{"index": index, **_chat_call(*call)}]}
        yield _chat("chat.completion.chunk", None, {"delta": delta})
    if "refusal" in message:
        yield _chat("chat.completion.chunk", None, {"delta": {"role": "assistant", "refusal": message["refusal"]}})
    yield _chat("chat.completion.chunk", message, {"delta": {}})
    yield {**_chat("chat.completion.chunk", None, {}), "choices": [], "usage": _chat_usage()}


def _chat(kind: str, ends: Json | None, choice: Json) -> Json:
    reason = None if ends is None else "tool_calls" if ends["calls"] else "stop"
    return {
        "id": "chatcmpl-1",
        "object": kind,
        "created": 0,
        "model": "gpt-4o-2026-08",
        "choices": [{"index": 0, "finish_reason": reason, **choice}],
    }


def _chat_call(name: str, arguments: str, call_id: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _chat_usage() -> Json:
    return {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def _response(message: Json) -> Json:
    said = [*map(message_item, message["texts"]), *(call_item(*call) for call in message["calls"]), *message["items"]]
    return {
        "id": "resp_7",
        "object": "response",
        "created_at": 0,
        "model": "gpt-4o-2026-08",
        "status": "completed",
        "output": said,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _USAGE,
    }
