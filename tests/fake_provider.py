"""A provider on this machine that speaks OpenAI's chat completions, or Anthropic's messages, by script, also badly."""

import itertools
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sessions_app.agents.live_model.client import LiveModelClient
from sessions_app.agents.live_model.endpoint import Endpoint, ModelUnavailable
from tests.recorder.local_server import Answer, LocalServer, local_server

Reply = Callable[[dict[str, Any]], Answer]
"""From the body of a request to its answer."""

PATH = "/v1/chat/completions"
MESSAGES_PATH = "/v1/messages"


@dataclass
class FakeProvider:
    """`reply` may be exchanged at any time. For requests that come one after the other."""

    server: LocalServer
    reply: Reply

    @property
    def url(self) -> str:
        """The base URL, as it stands in the settings."""
        return self.server.url + PATH.removesuffix("/chat/completions")

    @property
    def requests(self) -> int:
        return len(self.server.received)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(received.body) for received in self.server.received]

    def answer(self, path: str) -> Answer:
        return self.reply(self.bodies[-1]) if path in (PATH, MESSAGES_PATH) else Answer(status=404)


@contextmanager
def fake_provider(reply: Reply | Answer) -> Iterator[FakeProvider]:
    with local_server() as server:
        provider = FakeProvider(server, always(reply) if isinstance(reply, Answer) else reply)
        server.next_answer = provider.answer  # type: ignore[method-assign]  # the script is a function here
        yield provider


# --- what it answers with ----------------------------------------------------------------------


def says(text: str, **message: Any) -> Answer:
    return _completion({"role": "assistant", "content": text, **message}, "stop")


def calls(name: str, arguments: dict[str, Any], *, call_id: str = "call_live_1") -> Answer:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return _completion({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


def _completion(message: dict[str, Any], finish_reason: str) -> Answer:
    return of_json(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_795_000_000,
            "model": "fake-1",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        }
    )


def message(*content: dict[str, Any], stop_reason: str = "end_turn", **more: Any) -> Answer:
    """As Anthropic answers."""
    usage = {"input_tokens": 12, "output_tokens": 3}
    told = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-fake-1", "usage": usage}
    return of_json({**told, "content": list(content), "stop_reason": stop_reason, **more})


def of_json(value: Any, *, status: int = 200, **headers: str) -> Answer:
    return Answer(body=json.dumps(value).encode(), status=status, headers=headers)


# --- when it answers what ----------------------------------------------------------------------


def always(answer: Answer) -> Reply:
    return lambda body: answer


def in_turn(*answers: Answer) -> Reply:
    """One after the other, whatever is asked; the last one stays."""
    waiting = list(answers)
    return lambda body: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def sometimes(usual: Answer, wrong: Answer, *, share: float, seed: int) -> Reply:
    """Errs in this share of its answers."""
    chance = random.Random(seed)
    return lambda body: wrong if chance.random() < share else usual


def after_tools(before: Reply, after: Reply) -> Reply:
    """`after` once a tool's answer is the newest message, `before` until then."""
    return lambda body: (after if body["messages"][-1]["role"] == "tool" else before)(body)


# --- how it misbehaves -------------------------------------------------------------------------


def busy(retry_after: str | None = None, *, status: int = 429) -> Answer:
    return Answer(status=status, headers={} if retry_after is None else {"Retry-After": retry_after})


def redirect(to: str) -> Answer:
    return Answer(status=302, headers={"Location": to})


def endless() -> Answer:
    return Answer(chunks=lambda: itertools.repeat(b" " * 65536))


def dripping(answer: Answer, *, seconds: float) -> Answer:
    """The whole answer in the end, a byte at a time: never silent for long."""

    def drops() -> Iterable[bytes]:
        pieces = [answer.body[at : at + 1] for at in range(len(answer.body))]
        for piece in pieces:
            time.sleep(seconds / len(pieces))
            yield piece

    return Answer(chunks=drops)


def huge(size: int) -> Answer:
    """A right answer with a text of so many characters."""
    return says("x" * size)


# --- asking it ---------------------------------------------------------------------------------

KEY = "sk-very-secret-0123456789"
PROMPT = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Is it late?"}]}]


def make_endpoint(url: str, **fields: Any) -> Endpoint:
    return Endpoint(url=url, **{"key": KEY, "allow_private": True, "timeout_seconds": 20, **fields})


def ask(provider: FakeProvider, messages: Any = PROMPT, parameters: Any = None, **fields: Any) -> dict[str, Any]:
    """One answer of a model; `fields` are those of the endpoint."""
    return LiveModelClient(make_endpoint(provider.url, **fields)).answer(messages, parameters, model="gpt-4o")


def refusal(provider: FakeProvider, messages: Any = PROMPT, **fields: Any) -> str:
    with pytest.raises(ModelUnavailable) as caught:
        ask(provider, messages, **fields)
    return caught.value.reason
