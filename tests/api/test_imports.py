"""Exports of other products and other documents at the door for recordings."""

import json
from pathlib import Path

import pytest

from sessions_app.models import Run
from tests.builders import RECORDS, post_run, project_client
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db
AGENTS = Capture(CHOICE / "openai-agents-native-chat" / "order_lookup")
LANGSMITH = Capture(CHOICE / "openai-sdk-langsmith" / "order_lookup")
OTLP_JSON = Capture(CHOICE / "vercel-ai-v5" / "order_lookup")


def send(client, capture):
    answers = []
    for request in capture.requests:
        headers = {"Content-Encoding": request.encoding} if request.encoding else {}
        answers.append(client.post("/api/v1/runs", request.body, content_type=request.content_type, headers=headers))
    return answers


@pytest.mark.parametrize("capture", [AGENTS, LANGSMITH, OTLP_JSON], ids=str)
def test_an_export_becomes_a_run_with_its_calls(capture):
    client = project_client()

    first, again = send(client, capture), send(client, capture)

    assert {answer.status_code for answer in first} <= {200, 201}
    assert {answer.status_code for answer in again} == {200}
    (run,) = Run.objects.filter(model_call_count__gt=0)
    assert (run.status, run.model_call_count, run.tool_call_count) == ("ok", 3, 2)
    assert first[-1].json()["items"][0]["run_id"] == run.run_id


PAYLOAD = {
    "request": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": "You look up orders.",
        "tools": [{"name": "lookup", "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}}}],
        "messages": [
            {"role": "user", "content": "Where is 7?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "lookup", "input": {"id": "7"}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "in Oslo"}]},
        ],
    },
    "response": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": "In Oslo."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 30, "output_tokens": 5},
    },
}


def test_a_logged_request_to_a_provider_becomes_a_replayable_run():
    client = project_client()

    answer = post_run(client, PAYLOAD)

    run = Run.objects.get()
    assert answer.status_code == 201
    assert (run.verdict, run.output_preview, run.tool_names) == ("replayable", "In Oslo.", ["lookup"])


def test_a_cassette_becomes_tool_steps_in_recorded_order():
    client = project_client()
    request = {"method": "GET", "uri": "https://api.example.com/order/7", "body": None, "headers": {}}
    answers = [
        {
            "request": request,
            "response": {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": s}},
        }
        for s in ('{"state": "packed"}', '{"state": "sent"}')
    ]

    answer = post_run(client, {"version": 1, "interactions": answers})

    steps = client.get(f"/api/v1/runs/{answer.json()['run_id']}/steps").json()["items"]
    assert answer.status_code == 201
    assert [step["result"]["state"] for step in steps] == ["packed", "sent"]


def test_jsonl_of_an_export_is_read_line_by_line():
    client = project_client()
    lines = [item for request in AGENTS.requests for item in json.loads(request.inflated)["data"]]

    answer = post_run(client, "\n".join(map(json.dumps, lines)).encode())

    assert answer.status_code == 201
    assert Run.objects.get().model_call_count == 3


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "no ids"}]}]}]}, "cannot be read"),
        ({"data": [{"object": "trace.span", "id": "span_1"}]}, "data[0]"),
        ({"something": "else"}, "not known"),
        ([], "is empty"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words_and_stores_nothing(body, words):
    client = project_client()

    answer = post_run(client, body)

    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"] or words in str(answer.json()["error"]["field"])
    assert Run.objects.count() == 0


def test_a_message_dump_is_still_a_message_dump():
    client = project_client()

    answer = post_run(client, Path(RECORDS / "thinking.messages.json"))

    assert answer.status_code == 201
    assert Run.objects.get().source_format == "pydantic-ai-messages"
