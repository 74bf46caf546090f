"""Saved files that say something of the outcome beside their messages: no answer of theirs is called proven."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.replaying import assert_promise_kept, assert_reproduced, replayed

SESSION: dict[str, Any] = {
    "session_id": "s",
    "user_input": "Where?",
    "final_output": "There.",
    "messages": [
        {"type": "ModelRequest", "parts": [{"kind": "user-prompt", "content": "Where?"}]},
        {"type": "ModelResponse", "parts": [{"kind": "text", "content": "There."}]},
    ],
}
DUMPED: list[dict[str, Any]] = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Where?"}], "instructions": "Be short."},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "There."}]},
]
"""The same messages as Pydantic AI writes them."""
ITEMS: dict[str, Any] = {
    "run_id": "r",
    "input": "Weather?",
    "final_output": "Sunny.",
    "items": [
        {
            "type": "ToolCallItem",
            "raw": {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "a", "status": "completed"},
        },
        {
            "type": "ToolCallOutputItem",
            "raw": {"type": "function_call_output", "call_id": "a", "output": "72"},
            "output": "72",
        },
        {
            "type": "MessageOutputItem",
            "raw": {
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Sunny."}],
            },
        },
    ],
}


def record_of(document: dict[str, Any]) -> bytes:
    return encode_native(parse_document(json.dumps(document).encode()))


def changed(change: Callable[[list[dict[str, Any]]], Any]) -> dict[str, Any]:
    document = copy.deepcopy(ITEMS)
    change(document["items"])
    return document


def reasons(document: dict[str, Any]) -> list[tuple[str, int | None]]:
    return [(reason.code, reason.step) for reason in assert_promise_kept(record_of(document)).reasons]


@pytest.mark.parametrize("said", [{}, {"error": None}, {"status": "ok"}, {"success": True}, {"error": ""}])
@pytest.mark.parametrize("document", [SESSION, ITEMS])
def test_a_file_that_says_nothing_else_is_reproduced(document, said):
    assert_reproduced(record_of({**document, **said}))


@pytest.mark.parametrize(
    "said", [{"error": "boom"}, {"error": {"type": "E"}}, {"status": "error"}, {"status": "FAILED"}, {"success": False}]
)
@pytest.mark.parametrize("document", [SESSION, ITEMS])
def test_a_failure_beside_a_final_output_is_a_contradiction(document, said):
    steps = len(parse_document(json.dumps(document).encode()).steps)

    assert reasons({**document, **said}) == [("outcome_contradicts", steps + 1)]


@pytest.mark.parametrize(
    "change",
    [
        lambda items: items[2]["raw"]["content"].append({"type": "refusal", "refusal": "No."}),
        lambda items: items[2]["raw"].update(status="incomplete"),
        lambda items: items[0]["raw"].update(status="incomplete"),
        lambda items: items[1].update(type="MessageOutputItem"),
        lambda items: items[1].update(output="73"),
    ],
    ids=["refusal", "message incomplete", "call incomplete", "kind", "output"],
)
def test_what_an_item_says_beside_its_text_is_heard(change):
    assert reasons(changed(change)) == [("items_contradicted", 4)]


def test_a_session_file_may_hold_messages_as_the_library_dumps_them():
    assert_reproduced(record_of({**SESSION, "messages": DUMPED, "instructions": "Be short."}))


@pytest.mark.parametrize("said", [{"final_output": "No."}, {"user_input": "No."}, {"instructions": "No."}], ids=list)
def test_what_such_a_file_says_otherwise_than_its_messages_is_judged(said: dict[str, Any]):
    whole = record_of({**SESSION, "messages": DUMPED, "instructions": "Be short.", **said})

    assert judge(parse_native(whole)).verdict != "replayable"
    assert replayed(whole)[0].verdict != "reproduced"
