"""The address `/mcp`: who is let in, and what is answered to anything but a client's message."""

import json

import pytest
from django.test import Client

from sessions_app.mcp import over_http
from sessions_app.models import ApiKey
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import revoke_key
from tests.builders import make_key, make_project

pytestmark = pytest.mark.django_db
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


def ask(key="", body=PING, **headers):
    sent = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"} | headers
    client = Client(enforce_csrf_checks=True)
    data = body if isinstance(body, str) else json.dumps(body)
    return client.post("/mcp", data, content_type="application/json", headers=sent)


def test_a_message_is_answered_with_one_json_body():
    answer = ask(make_key(make_project()))

    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json() == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_a_revoked_key_and_strangers_are_refused():
    key = make_key(make_project())
    revoke_key(ApiKey.objects.get())

    for refused in (ask(key), ask("rpk_wrong"), ask(), ask(key, Authorization=f"Basic {key}")):
        assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Bearer")
        assert refused.json()["error"]["code"] == "unauthorized"


def test_a_key_that_may_only_send_is_told_so():
    refused = ask(make_key(make_project(), KeyScope.INGEST))

    assert refused.status_code == 403
    assert "may only send" in refused.json()["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_other_method(method):
    refused = Client().generic(method, "/mcp", headers={"Authorization": f"Bearer {make_key(make_project())}"})

    assert (refused.status_code, refused["Allow"]) == (405, "POST")


@pytest.mark.parametrize("body", ["0", "{", "[]", "null", "[" * 10_000, '{"jsonrpc": "2.0"}', '{"id": 1}'])
def test_what_is_no_message_is_refused_in_words(body):
    refused = ask(make_key(make_project()), body)

    assert refused.status_code == 400
    assert refused.json()["error"]["message"]


def test_a_message_has_a_limit(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    refused = ask(make_key(make_project()), "x" * 1001)

    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")


def test_what_goes_wrong_inside_is_told_without_details(monkeypatch):
    def broken(*_):
        raise RuntimeError("password is hunter2")

    monkeypatch.setattr(over_http, "_answer", broken)
    client = Client(raise_request_exception=False)
    key = make_key(make_project())
    answer = client.post("/mcp", PING, "application/json", headers={"Authorization": f"Bearer {key}"})

    assert answer.status_code == 500
    assert b"hunter2" not in answer.content
