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
from tests.fake_provider import calls, fake_provider, in_turn, says
from tests.recorder import plain_loops
from tests.recorder.recordings import records_of
from tests.recorder.replaying import assert_promise_kept

Body = dict[str, Any]


@pytest.fixture(scope="module")
def read_record() -> bytes:
    """As the server hands it out once it has read the requests from the bodies."""
    answers = in_turn(calls("find_order", {"order_id": "ORD-5521"}), says("It was delivered."))
    with fake_provider(answers) as provider:
        (record,) = records_of(lambda: plain_loops.chat(provider.url)("Where is ORD-5521?"))
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
