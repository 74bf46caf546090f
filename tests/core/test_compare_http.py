"""What a provider makes anew for each answer parts no two runs whose HTTP was recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.compare.runs import Comparison, compare_runs
from sessions_app.core.compare.volatile import VOLATILE_RULES, without
from sessions_app.core.payload import Payload
from sessions_app.core.run import Call, HttpExchange, Run
from tests.core.test_compare_runs import make_run, model, paths, tool


def stream(*events: Any) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def chat(n: int) -> dict[str, Any]:
    call = {"id": f"call_{n}", "type": "function", "function": {"name": "look", "arguments": '{"id": 1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"id": f"chatcmpl-{n}", "created": n, "model": "gpt-4o", "choices": [{"index": 0, "message": message}]}


def chat_stream(n: int) -> str:
    said = {"id": f"chatcmpl-{n}", "created": n, "obfuscation": "x" * n}
    call = {"index": 0, "id": f"call_{n}", "function": {"name": "look", "arguments": "{}"}}
    return stream(*({**said, "choices": [{"delta": each}]} for each in ({"content": "Hm."}, {"tool_calls": [call]})))


def responses(n: int) -> dict[str, Any]:
    call = {"id": f"fc_{n}", "type": "function_call", "call_id": f"call_{n}", "name": "look", "arguments": "{}"}
    return {"id": f"resp_{n}", "created_at": n, "completed_at": n + 1, "model": "gpt-4o", "output": [call]}


def responses_stream(n: int) -> str:
    begun = {"type": "response.created", "response": {"id": f"resp_{n}", "created_at": n}}
    item = {"type": "response.output_item.added", "item": {"id": f"fc_{n}", "call_id": f"call_{n}"}}
    delta = {"type": "response.function_call_arguments.delta", "item_id": f"fc_{n}", "delta": "{}"}
    return stream(begun, item, delta, {"type": "response.completed", "response": responses(n)})


def anthropic(n: int) -> dict[str, Any]:
    call = {"type": "tool_use", "id": f"toolu_{n}", "name": "look", "input": {"id": 1}}
    return {"id": f"msg_{n}", "model": "claude", "content": [call]}


def google(n: int) -> dict[str, Any]:
    return {"responseId": f"r{n}", "createTime": f"2026-01-0{n}T00:00:00Z", "candidates": [{"content": {"parts": []}}]}


def asked_again(n: int) -> dict[str, Any]:
    call = {"id": f"call_{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": f"call_{n}", "content": "1"}]
    return {"model": "gpt-4o", "messages": asked}


def asked_of_responses(n: int) -> dict[str, Any]:
    return {
        "input": [{"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}"}],
        "previous_response_id": str(n),
    }


BODIES = [chat, chat_stream, responses, responses_stream, anthropic, google]


def payload(body: Any) -> Payload:
    return Payload.of_text(body) if isinstance(body, str) else Payload.of_json(body)


def run_with(call: Call, name: str, body: Any, run_id: str) -> Run:
    run = make_run(call, run_id=run_id)
    [step] = run.steps
    said: dict[str, Any] = {name: payload(body)}
    return replace(run, steps=(replace(step, http=HttpExchange(**said)),))


def compared(one: Any, other: Any, *, name: str = "response_body", call: Call | None = None, **more: Any) -> Comparison:
    call = call or model("Done.", "Go")
    return compare_runs(run_with(call, name, one, "a"), run_with(call, name, other, "b"), **more)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_what_the_provider_made_anew_is_hidden_and_counted(body: Any):
    comparison = compared(body(1), body(2))

    assert (comparison.divergence, paths(comparison)) == (None, [])
    assert sum(each.count for each in comparison.ignored) >= 2


@pytest.mark.parametrize("body", [asked_again, asked_of_responses], ids=lambda body: body.__name__)
def test_ids_of_earlier_answers_in_a_request_are_hidden(body: Any):
    assert paths(compared(body(1), body(2), name="request_body")) == []


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_switched_off_they_are_shown_at_their_places(body: Any):
    rules = without(["provider-response-id", "provider-time"])

    shown = paths(compared(body(1), body(2), rules=rules))

    assert shown
    assert all(path.startswith("http.response_body") for path in shown)
    assert any("id" in path.lower() for path in shown)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (("gpt-4o", "gpt-4o-mini"), "model"),
        (
            ('{\\"id\\": 1}', '{\\"id\\": 2}'),
            "choices[0].message.tool_calls[0].function.arguments.id",
        ),
    ],
)
def test_anything_else_in_the_answer_is_a_difference(change: tuple[str, str], path: str):
    changed = json.loads(json.dumps(chat(2)).replace(*change))

    assert paths(compared(chat(1), changed)) == [f"http.response_body.{path}"]


def test_arguments_that_the_provider_sends_as_json_are_compared():
    changed = json.loads(json.dumps(anthropic(2)).replace('{"id": 1}', '{"id": 2}'))

    assert paths(compared(anthropic(1), changed)) == ["http.response_body.content[0].input.id"]


def test_another_event_of_a_stream_is_shown_at_its_place():
    assert paths(compared(chat_stream(1), chat_stream(2).replace("Hm.", "Oh."))) == [
        "http.response_body[0].choices[0].delta.content"
    ]


def test_the_http_of_a_tool_is_compared_whole():
    order = {"id": "ORD-1", "created": 1}

    comparison = compared(order, {"id": "ORD-2", "created": 2}, call=tool("look"))

    assert paths(comparison) == ["http.response_body.id", "http.response_body.created"]
    assert comparison.rules[: len(VOLATILE_RULES)] == VOLATILE_RULES


def test_ids_of_the_parts_of_an_answer_are_hidden_and_counted():
    one, other = (
        replace(model("Done.", "Go"), response=Payload.of_json({"kind": "response", "parts": [{"id": made}]}))
        for made in ("msg_1", "msg_2")
    )

    comparison = compare_runs(make_run(one, run_id="a"), make_run(other, run_id="b"))

    assert paths(comparison) == []
    assert [(each.rule.key, each.count) for each in comparison.ignored] == [("provider-response-id", 1)]
