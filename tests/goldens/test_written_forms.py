"""A recorded run in the forms that people's own tests take: events, a session file, a cassette."""

from __future__ import annotations

import asyncio
import json

import pytest
import vcr
from vcr.errors import CannotOverwriteExistingCassetteException

from replay_goldens.cassettes import NoHttpRecorded, cassette_of
from replay_goldens.events import events_of
from replay_goldens.sessions import create_replay_model, session_of
from replay_recorder import RecordingExhausted
from replay_recorder.replaying.recording import read_arguments
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import parse_native
from tests.web.records import EXAMPLES


def scene(name):
    return json.loads((EXAMPLES / f"{name}.json").read_bytes())


def test_events_have_the_state_in_front_of_and_behind_each_step():
    looked, cancelled, answered = events_of(scene("cancel_bug"))

    assert (looked.tool_name, looked.tool_args) == ("lookup_order", {"order_id": "ORD-5521"})
    assert looked.input_state["orders"]["ORD-5521"]["status"] == "delivered"
    assert cancelled.output_state["orders"]["ORD-5521"]["status"] == "cancelled"
    assert (answered.decision, answered.tool_name) == ("answer", None)
    assert answered.output_state["answer"].startswith("I've cancelled order ORD-5521")


def test_a_session_of_a_run_is_read_as_that_run():
    record = scene("cancel_bug")

    again, run = parse_document(json.dumps(session_of(record)).encode()), parse_native(json.dumps(record).encode())

    assert _calls(again) == _calls(run)
    assert (again.run_id, again.output.value, again.instructions) == (run.run_id, run.output.value, run.instructions)


def _calls(run):
    return [(call.tool_name, read_arguments(call.arguments.value), call.result.value) for _, call in run.tool_calls]


def test_a_replay_model_makes_no_answer_up():
    pydantic_ai = pytest.importorskip("pydantic_ai")
    agent = pydantic_ai.Agent(create_replay_model({"messages": []}))

    with pytest.raises(RecordingExhausted, match="none is left"):
        asyncio.run(agent.run("Hello"))


HTTP = {
    "method": "POST",
    "url": "http://orders.test/ORD-1",
    "request_body": "{}",
    "status": 200,
    "response_headers": [["Content-Type", "application/octet-stream"]],
    "response_body": {"base64": "/wAB"},
}


def test_a_cassette_answers_as_the_recording_did(tmp_path):
    import urllib.request

    tool = {"kind": "tool", "name": "cancel", "tool_name": "cancel", "arguments": "{}", "result": "ok", "http": HTTP}
    record = {"format": "agent-replay.run", "version": 1, "run_id": "r1", "steps": [tool]}
    path = tmp_path / "r1.yaml"
    path.write_text(cassette_of(record))

    with vcr.use_cassette(str(path), record_mode="none", match_on=["method", "uri", "body"]):
        assert urllib.request.urlopen("http://orders.test/ORD-1", b"{}").read() == b"\xff\x00\x01"
        with pytest.raises(CannotOverwriteExistingCassetteException):
            urllib.request.urlopen("http://orders.test/ORD-2", b"{}")


def test_a_run_without_http_gives_no_cassette():
    with pytest.raises(NoHttpRecorded, match="cancel_5521"):
        cassette_of(scene("cancel_bug"))
