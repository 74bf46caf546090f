"""Checkpoints and changes of the state by the API."""

import hashlib
import json
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.history import messages
from tests.builders import EXAMPLES, make_client, make_key, make_project, make_record, make_tool_step, post_run

pytestmark = pytest.mark.django_db
CANCEL = EXAMPLES / "cancel_bug.json"


@pytest.fixture
def client():
    return make_client(make_key(make_project()))


@pytest.fixture
def cancelled(client):
    post_run(client, CANCEL)
    return parse_document(CANCEL.read_bytes())


def get(client, address, **query):
    return client.get(f"/api/v1/runs/{address}", query)


def setting(path, value):
    return {"state": {"after": [{"op": "add", "path": path, "value": value}]}}


def test_a_checkpoint_holds_what_was_there_after_the_step(client, cancelled):
    body = get(client, "cancel_5521/checkpoints/3").json()

    third = cancelled.steps[2].call
    lookup = cancelled.steps[1]
    state = {
        "orders": {"ORD-5521": {"item": "Widget Pro", "status": "delivered", "cancellable": False}},
        "memory": ["ORD-5521: delivered, non-cancellable"],
        "iteration_count": 2,
    }
    canonical = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert body == {
        "run_id": "cancel_5521",
        "step": 3,
        "run": {"user_id": "u_2071", "started_at": "2026-11-16T09:41:12.000000+00:00", "agent_version": "v1"},
        "messages": [message.value for message in messages(third.output_history)],
        "tool_calls": [
            {
                "step": 2,
                "name": "lookup_order",
                "arguments": {"order_id": "ORD-5521"},
                "result": "Order ORD-5521: Widget Pro, status: delivered, non-cancellable",
                "error": None,
                "duration_ms": lookup.duration_ms,
            }
        ],
        "model_config": {
            "model": "gpt-4o",
            "provider": "openai",
            "region": "eu-west-1",
            "settings": {"temperature": 0.7, "top_p": 1.0, "seed": 20171},
            "prompt_version": None,
        },
        "state": state,
        "state_digest": hashlib.sha256(canonical).hexdigest(),
        "state_error": None,
        "snapshots": [],
    }


def test_each_step_has_its_own_checkpoint(client, cancelled):
    bodies = [get(client, f"cancel_5521/checkpoints/{step}").json() for step in range(1, 6)]

    assert [len(body["messages"]) for body in bodies] == [2, 2, 4, 4, 6]
    assert [len(body["tool_calls"]) for body in bodies] == [0, 1, 1, 2, 2]
    assert len({body["state_digest"] for body in bodies}) == 5


@pytest.mark.parametrize("step", ["0", "6", "99999999999"])
def test_a_step_that_is_not_there_is_404(client, cancelled, step):
    response = get(client, f"cancel_5521/checkpoints/{step}")

    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


def test_a_step_that_is_no_number_is_named(client, cancelled):
    response = get(client, "cancel_5521/checkpoints/two")

    assert (response.status_code, response.json()["error"]["field"]) == (400, "step")


def test_snapshots_up_to_the_step_are_told(client):
    taken = {"kind": "other", "name": "x", "snapshot": {"label": "x", "automatic": False}, **setting("/memory", [])}
    post_run(client, make_record("r", make_tool_step(), taken, taken))

    told = [get(client, f"r/checkpoints/{step}").json()["snapshots"] for step in (1, 2)]

    assert told == [[], [{"step": 2, "label": "x", "automatic": False}]]


def test_a_state_that_cannot_be_rebuilt_says_why(client):
    wrong: dict[str, Any] = {"state": {"after": [{"op": "remove", "path": "/nowhere"}]}}
    post_run(client, make_record("r", make_tool_step(**setting("/a", 1)), make_tool_step(**wrong)))

    sound, broken = (get(client, f"r/checkpoints/{step}").json() for step in (1, 2))

    assert (sound["state"], sound["state_error"]) == ({"a": 1}, None)
    assert (broken["state"], broken["state_digest"]) == (None, None)
    assert "there is no 'nowhere'" in broken["state_error"]


def test_a_run_without_state_and_messages_has_null_for_them(client):
    answer = {"kind": "model", "response": {"kind": "response", "parts": []}}
    post_run(client, make_record("answered", answer))
    post_run(client, make_record("no-model", make_tool_step()))

    for run_id in ("answered", "no-model"):
        body = get(client, f"{run_id}/checkpoints/1").json()
        assert (body["messages"], body["state"], body["state_digest"]) == (None, None, None)


def test_before_the_first_request_there_are_no_messages(client):
    messages = [{"kind": "request", "parts": []}]
    asking = {"kind": "model", "request": {"messages": messages}}
    post_run(client, make_record("r", make_tool_step(), asking))

    bodies = [get(client, f"r/checkpoints/{step}").json() for step in (1, 2)]

    assert [body["messages"] for body in bodies] == [[], messages]


def test_every_change_of_a_value_is_told(client, cancelled):
    body = get(client, "cancel_5521/state", path="/orders/ORD-5521/status").json()

    assert body == {
        "run_id": "cancel_5521",
        "path": "/orders/ORD-5521/status",
        "items": [{"step": 4, "kind": "replace", "before": "delivered", "after": "cancelled", "between": False}],
        "next_cursor": None,
        "not_known_from": None,
    }


def test_a_value_that_was_not_there_is_no_null(client):
    steps = [setting("/n", None), {"state": {"after": [{"op": "remove", "path": "/n"}]}}]
    post_run(client, make_record("r", *(make_tool_step(**step) for step in steps)))

    items = get(client, "r/state", path="/n").json()["items"]

    assert [(item["kind"], item["before"], item["after"]) for item in items] == [
        ("add", None, None),
        ("remove", None, None),
    ]


def test_changes_come_in_pages(client):
    post_run(client, make_record("r", *(make_tool_step(**setting("/n", i)) for i in range(5))))

    first = get(client, "r/state", path="/n", limit=3).json()
    rest = get(client, "r/state", path="/n", limit=3, cursor=first["next_cursor"]).json()

    assert [item["step"] for item in first["items"] + rest["items"]] == [1, 2, 3, 4, 5]
    assert rest["next_cursor"] is None


def test_where_changes_stop_to_fit_is_told_on_every_page(client):
    wrong: dict[str, Any] = {"state": {"after": [{"op": "remove", "path": "/nowhere"}]}}
    post_run(client, make_record("r", *(make_tool_step(**setting("/n", i)) for i in range(3)), make_tool_step(**wrong)))

    assert get(client, "r/state", path="/n", limit=1).json()["not_known_from"] == 4


@pytest.mark.parametrize(("field", "value"), [("path", "orders"), ("path", "/a~2"), ("cursor", "x"), ("limit", "0")])
def test_what_cannot_be_read_is_named(client, cancelled, field, value):
    response = get(client, "cancel_5521/state", **{field: value})

    assert (response.status_code, response.json()["error"]["field"]) == (400, field)


def test_another_project_has_no_such_run(client, cancelled):
    stranger = make_client(make_key(make_project("other")))

    for path in ("cancel_5521/checkpoints/2", "cancel_5521/state"):
        assert get(stranger, path).status_code == 404
