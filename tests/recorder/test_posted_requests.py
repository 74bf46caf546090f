"""Loops that write their requests themselves: what a request holds is compared with the body that was sent."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from replay_recorder import record
from sessions_app.core.assembly.model_exchanges import with_conversation
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from tests.fake_provider import of_json
from tests.recorder.local_server import local_server
from tests.recorder.recordings import records_of
from tests.recorder.replaying import assert_promise_kept, replayed

Json = dict[str, Any]
ANSWER = "It is a widget."
"""Of the last answer in each loop, and so of the loop."""


def posted(path: str, *exchanges: tuple[Json, Json]) -> Json:
    """The record of a function that sends these requests and gets these answers, as the server hands it out."""
    with local_server() as server:
        server.answer(path, *(of_json(answer) for _, answer in exchanges))

        @record
        def support(question: str) -> str:
            for body, _ in exchanges:
                httpx.post(server.url + path, json=body)
            return ANSWER

        (written,) = records_of(lambda: support("What is it?"))
    found: Json = json.loads(encode_native(with_conversation(parse_native(written))))
    return found


def reasons(document: Json) -> list[tuple[str, int | None]]:
    recorded = json.dumps(document).encode()
    assert_promise_kept(recorded)
    return [(reason.code, reason.step) for reason in judge(parse_native(recorded)).reasons]


def proof(document: Json) -> Json:
    result, _ = replayed(json.dumps(document).encode())
    assert result.verdict == "reproduced"
    found: Json = (result.facts or {})["proof"]
    return found


# --- as the protocols write them ----------------------------------------------------------------


CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
GOOGLE = "/v1beta/models/gemini-x:generateContent"


def chat(*messages: Json) -> Json:
    return {"model": "gpt-4o", "messages": list(messages)}


def completion(text: str | None = ANSWER, *calls: Json) -> Json:
    message = {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}
    return {"model": "gpt-4o", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def claude(*messages: Json) -> Json:
    return {"model": "claude-x", "max_tokens": 9, "messages": list(messages)}


def reply(*blocks: Json) -> Json:
    said = list(blocks) or [{"type": "text", "text": ANSWER}]
    return {"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "content": said}


def gemini(*contents: Json) -> Json:
    return {"contents": list(contents)}


def candidate(*parts: Json) -> Json:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts) or [{"text": ANSWER}]}}]}


def user(*content: Json) -> Json:
    return {"role": "user", "content": list(content)}


# --- prompts that are no text -------------------------------------------------------------------


ASKS = {"type": "text", "text": "What is it?"}
PNG, OTHER = "iVBORw0KGgo=", "R0lGODlhAQA="
IMAGE = {"type": "base64", "media_type": "image/png", "data": PNG}
PROMPTS = {
    "image of chat": (CHAT, chat(user(ASKS, {"type": "image_url", "image_url": {"url": PNG}})), completion()),
    "sound": (CHAT, chat(user(ASKS, {"type": "input_audio", "input_audio": {"data": PNG}})), completion()),
    "file": (CHAT, chat(user(ASKS, {"type": "file", "file": {"file_data": PNG}})), completion()),
    "image of messages": (MESSAGES, claude(user(ASKS, {"type": "image", "source": IMAGE})), reply()),
    "document": (MESSAGES, claude(user({"type": "document", "source": IMAGE}, ASKS)), reply()),
    "inline data": (
        GOOGLE,
        gemini({"role": "user", "parts": [{"text": "What is it?"}, {"inlineData": {"data": PNG}}]}),
        candidate(),
    ),
}


@pytest.fixture(scope="module", params=PROMPTS)
def document(request: pytest.FixtureRequest) -> Json:
    path, body, answer = PROMPTS[request.param]
    return posted(path, (body, answer))


def content_of(document: Json) -> list[Any]:
    (part,) = document["steps"][0]["request"]["messages"][0]["parts"]
    found: list[Any] = part["content"]
    return found


def test_a_prompt_that_is_no_text_alone_replays(document: Json):
    assert len(content_of(document)) == 2
    assert reasons(document) == []
    assert proof(document)["requests"]["state"] == "proven"


def _exchanged(document: Json) -> Json:
    exchanged: Json = json.loads(json.dumps(document["steps"][0]["request"]).replace(PNG, OTHER))
    return exchanged


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["steps"][0].update(request=_exchanged(document)),
        lambda document: content_of(document).pop(),
        lambda document: content_of(document).append(content_of(document)[1]),
        lambda document: content_of(document).reverse(),
    ],
    ids=["other", "dropped", "doubled", "moved"],
)
def test_such_a_prompt_that_was_changed_is_judged(document: Json, change: Callable[[Json], object]):
    changed = copy.deepcopy(document)
    change(changed)

    assert changed != document
    assert ("http_contradicted", 1) in reasons(changed)
