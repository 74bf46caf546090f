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


def sent_in(document: Json, step: int) -> Json:
    """The body of a request, to be changed."""
    http = document["steps"][step - 1]["http"]
    found: Json = json.loads(http["request_body"])
    http["request_body"] = found
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
    found: Json = json.loads(json.dumps(document["steps"][0]["request"]).replace(PNG, OTHER))
    return found


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


def test_a_changed_prompt_beside_redacted_words_is_not_proven():
    words = {"type": "text", "text": "What did [email:1a2b3c4d] send?"}
    body = chat(user(words, {"type": "image_url", "image_url": {"url": PNG}}))
    document = posted(CHAT, (body, completion())) | {"input": words["text"]}
    assert proof(document)["requests"]["state"] == "proven"

    document["steps"][0].update(request=_exchanged(document))

    assert proof(document)["requests"]["state"] == "not_comparable"
    assert "was redacted and cannot be compared" in proof(document)["requests"]["reason"]


# --- what was said before -----------------------------------------------------------------------


def of_responses(id: str, *output: Json) -> Json:
    return {"id": id, "object": "response", "model": "gpt-4o", "status": "completed", "output": list(output)}


def message_item(text: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call_item(call_id: str) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "find", "arguments": "{}"}


def given_item(call_id: str) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": "7"}


@pytest.fixture(scope="module")
def kept_by_the_provider() -> Json:
    asked = {"model": "gpt-4o", "instructions": "Be brief.", "input": [{"role": "user", "content": "What is it?"}]}
    goes_on = [{**asked, "previous_response_id": f"r{at}", "input": [given_item(f"c{at}")]} for at in (1, 2)]
    asks = [of_responses(f"r{at}", call_item(f"c{at}")) for at in (1, 2)]
    answers = [*asks, of_responses("r3", message_item(ANSWER))]
    return posted(RESPONSES, *zip([asked, *goes_on], answers, strict=True))


def test_requests_that_go_on_from_an_answer_by_its_id_are_proven(kept_by_the_provider: Json):
    assert [step["kind"] for step in kept_by_the_provider["steps"]] == ["model", "tool", "model", "tool", "model"]
    assert reasons(kept_by_the_provider) == []
    assert proof(kept_by_the_provider)["requests"]["state"] == "proven"


def _told(document: Json, step: int) -> Json:
    found: Json = document["steps"][step - 1]["request"]["messages"][-1]
    return found


def _forge_answer(document: Json) -> None:
    document["steps"][1]["result"] = _told(document, 3)["parts"][0]["content"] = "8"


def _forge_instructions(document: Json) -> None:
    _told(document, 3)["instructions"] = "Be long."


@pytest.mark.parametrize("change", [_forge_answer, _forge_instructions])
def test_what_such_a_request_says_is_compared_with_what_was_sent(kept_by_the_provider: Json, change):
    changed = copy.deepcopy(kept_by_the_provider)
    change(changed)

    assert ("http_contradicted", 3) in reasons(changed)


def test_an_answer_of_a_tool_that_is_an_object_is_compared_too():
    asked = {"role": "user", "parts": [{"text": "What is it?"}]}
    call = {"functionCall": {"name": "find", "args": {}}}
    given = {"functionResponse": {"name": "find", "response": {"price": 1.5}}}
    told = [asked, {"role": "model", "parts": [call]}, {"role": "user", "parts": [given]}]
    document = posted(GOOGLE, (gemini(asked), candidate(call)), (gemini(*told), candidate()))
    assert reasons(document) == []

    document["steps"][1]["result"] = _told(document, 3)["parts"][0]["content"] = {"price": 9}

    assert ("http_contradicted", 3) in reasons(document)


# --- how a model is told of what tools gave -----------------------------------------------------


def two_calls(*told: str) -> Json:
    """A loop that tells of the results of two calls in this order."""
    calls = [{"id": each, "type": "function", "function": {"name": "find", "arguments": "{}"}} for each in ("c1", "c2")]
    asked = {"role": "user", "content": "What is it?"}
    asks = {"role": "assistant", "content": None, "tool_calls": calls}
    given = [{"role": "tool", "tool_call_id": each, "content": each} for each in told]
    return posted(CHAT, (chat(asked), completion(None, *calls)), (chat(asked, asks, *given), completion()))


def test_the_order_in_which_a_model_was_told_is_part_of_the_proof():
    as_asked, reversed_order = two_calls("c1", "c2"), two_calls("c2", "c1")

    assert reasons(as_asked) == reasons(reversed_order) == []
    assert proof(as_asked)["requests"]["state"] == "proven"
    assert proof(reversed_order)["requests"]["state"] == "not_comparable"
    assert "stood in another order than the calls" in proof(reversed_order)["requests"]["reason"]


def test_an_order_that_was_changed_in_the_body_is_judged():
    document = two_calls("c1", "c2")
    sent = sent_in(document, 4)["messages"]
    sent[2], sent[3] = sent[3], sent[2]

    assert ("http_contradicted", 4) in reasons(document)


def told_of_failure(*, is_error: bool) -> Json:
    use = {"type": "tool_use", "id": "t1", "name": "find", "input": {}}
    given = {"type": "tool_result", "tool_use_id": "t1", "content": "boom", "is_error": is_error}
    asked = user(ASKS)
    told = claude(asked, {"role": "assistant", "content": [use]}, user(given))
    return posted(MESSAGES, (claude(asked), reply(use)), (told, reply()))


@pytest.mark.parametrize(("is_error", "outcome"), [(True, "failed"), (False, "success")])
def test_a_model_that_was_told_of_a_failure_is_told_so_again(is_error: bool, outcome: str):
    document = told_of_failure(is_error=is_error)

    assert (document["steps"][1]["outcome"], document["steps"][1]["result"]) == (outcome, "boom")
    assert reasons(document) == []
    assert proof(document)["requests"]["state"] == "proven"


@pytest.mark.parametrize("is_error", [True, False])
def test_a_failure_that_is_told_in_two_ways_is_judged(is_error: bool):
    document, of_step = told_of_failure(is_error=is_error), told_of_failure(is_error=is_error)
    sent_in(document, 3)["messages"][2]["content"][0]["is_error"] = not is_error
    of_step["steps"][1]["outcome"] = "success" if is_error else "failed"

    assert ("http_contradicted", 3) in reasons(document)
    assert ("answer_contradicted", 2) in reasons(of_step)


# --- what ran at the provider -------------------------------------------------------------------


@pytest.fixture(scope="module")
def searched() -> Json:
    search = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "widget"}}
    asked = {"model": "gpt-4o", "input": "What is it?"}
    return posted(RESPONSES, (asked, of_responses("r1", search, message_item(ANSWER))))


def test_a_search_that_the_provider_ran_is_no_text_of_the_answer(searched: Json):
    said = [part["part_kind"] for part in searched["steps"][0]["response"]["parts"]]

    assert (said, reasons(searched)) == (["builtin-tool-call", "text"], [])
    assert proof(searched)["outcome"]["state"] == "proven"


def test_such_a_search_is_compared_with_what_came_over_the_wire(searched: Json):
    changed = copy.deepcopy(searched)
    changed["steps"][0]["response"]["parts"][0]["args"]["action"]["query"] = "gadget"

    assert ("http_contradicted", 1) in reasons(changed)
