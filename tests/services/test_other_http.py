"""A conversation that was read from HTTP is held against that HTTP when its record comes in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sessions_app.core.assembly.model_exchanges import with_conversation
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from sessions_app.mapping.load import load_run
from sessions_app.services.ingest import ingest_document
from tests.builders import make_project
from tests.fake_provider import calls, fake_provider, in_turn, message, says
from tests.recorder import plain_loops
from tests.recorder.recordings import records_of
from tests.recorder.replaying import assert_promise_kept, replayed

Body = dict[str, Any]


@pytest.fixture(scope="module")
def read_record() -> bytes:
    """As the server hands it out once it has read the requests from the bodies."""
    answers = in_turn(calls("find_order", {"order_id": "ORD-5521"}), says("It was delivered."))
    with fake_provider(answers) as provider:
        (record,) = records_of(lambda: plain_loops.chat(provider.url)("Where is ORD-5521?"))
    return _read(record)


def _read(record: bytes) -> bytes:
    return encode_native(with_conversation(parse_native(record)))


def ingested(record: bytes) -> list[tuple[str, int | None]]:
    run = load_run(ingest_document(make_project(), record).run)
    assert_promise_kept(encode_native(run))
    return [(reason.code, reason.step) for reason in judge(run).reasons]


def changed(record: bytes, step: int, change: Callable[[Body], object]) -> bytes:
    document = json.loads(record)
    http = document["steps"][step - 1]["http"]
    body = json.loads(http["request_body"]) if isinstance(http["request_body"], str) else http["request_body"]
    change(body)
    http["request_body"] = body
    return json.dumps(document).encode()


@pytest.mark.django_db
def test_what_was_read_and_not_changed_is_no_contradiction(read_record: bytes):
    assert ingested(read_record) == []


def _swap(body: Body) -> None:
    said = body["messages"]
    said[0], said[1] = said[1], said[0]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("step", "change"),
    [
        (1, lambda body: body["messages"].pop(1)),
        (1, lambda body: body["messages"].clear()),
        (1, _swap),
        (1, lambda body: body["messages"][1].update(role="system")),
        (1, lambda body: body["tools"][0]["function"].update(description="Another.")),
        (1, lambda body: body["tools"][0]["function"].pop("parameters")),
        (3, lambda body: body["messages"][2]["tool_calls"][0].pop("function")),
        (3, lambda body: body.update(temperature=1.5)),
    ],
    ids=["no prompt", "nothing", "order", "role", "description", "schema", "call", "setting"],
)
def test_http_that_was_changed_since_is_judged_at_its_step(
    read_record: bytes, step: int, change: Callable[[Body], object]
):
    assert ("http_contradicted", step) in ingested(changed(read_record, step, change))


@pytest.mark.django_db
def test_a_step_that_was_changed_since_is_judged_too(read_record: bytes):
    document = json.loads(read_record)
    document["steps"][0]["tools"], document["tools"] = [0], [{**document["tools"][0], "description": "Another."}]

    assert ("http_contradicted", 1) in ingested(json.dumps(document).encode())


@pytest.mark.django_db
def test_a_mark_that_came_with_the_record_says_nothing(read_record: bytes):
    document = json.loads(read_record)
    document["steps"][0]["http_told"] = "request"

    assert ingested(json.dumps(document).encode()) == []


# --- what the model thought ----------------------------------------------------------------------


def _thoughts(body: Body) -> Any:
    return body["messages"][1]["content"]


@pytest.fixture(scope="module")
def thoughtful_record() -> bytes:
    """As the recorder wrote it."""
    thought = {"type": "thinking", "thinking": "Look it up.", "signature": "s1"}
    call = {"type": "tool_use", "id": "c1", "name": "find_order", "input": {"order_id": "ORD-5521"}}
    answers = in_turn(message(thought, call), message({"type": "text", "text": "It was delivered."}))
    with fake_provider(answers) as provider:
        (record,) = records_of(lambda: plain_loops.anthropic_messages(provider.url)("Where is ORD-5521?"))
    return record


@pytest.mark.parametrize(
    ("change", "is_another"),
    [
        (lambda body: None, False),
        (lambda body: _thoughts(body)[0].update(thinking="Guess."), True),
        (lambda body: _thoughts(body)[0].update(signature="s2"), True),
        (lambda body: _thoughts(body).pop(0), True),
        (lambda body: _thoughts(body).insert(0, {**_thoughts(body)[0], "thinking": "Guess."}), True),
    ],
    ids=["untouched", "thought", "signature", "left out", "added"],
)
def test_a_request_that_tells_an_earlier_thought_otherwise_is_not_proven(
    thoughtful_record: bytes, change: Callable[[Body], object], is_another: bool
):
    result, _ = replayed(_read(changed(thoughtful_record, 2, change)))

    assert result.verdict == "reproduced"
    requests = result.facts["proof"]["requests"]
    assert (requests["state"] == "not_comparable") is is_another
    assert ("gives the thinking of an answer differently" in (requests["reason"] or "")) is is_another


@pytest.mark.django_db
@pytest.mark.parametrize("is_changed", [False, True])
def test_a_thought_that_was_changed_since_is_judged_at_its_step(thoughtful_record: bytes, is_changed: bool):
    record = _read(thoughtful_record)
    change = (lambda body: _thoughts(body)[0].update(thinking="Guess.")) if is_changed else str

    assert ingested(changed(record, 3, change)) == ([("http_contradicted", 3)] if is_changed else [])
