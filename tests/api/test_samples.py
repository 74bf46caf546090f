"""Every sample record through the door: sent, read, sent on to another project."""

import json

import pytest

from sessions_app.mapping.load import load_run
from sessions_app.models import Run
from tests.builders import SESSION_FILE, each_sample, make_record, make_tool_step, post_run, project_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    return project_client()


def get(client, path):
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_the_session_file_is_taken_unchanged(client):
    answer = post_run(client, SESSION_FILE)
    again = post_run(client, SESSION_FILE)
    other = post_run(client, SESSION_FILE.read_bytes().replace(b"for you...", b"for you!"))

    assert (answer.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert answer.json() == again.json()
    assert {key: answer.json()[key] for key in ("run_id", "session_id", "url")} == {
        "run_id": "abc123",
        "session_id": "abc123",
        "url": "http://testserver/p/shop/s/abc123",
    }
    assert answer.json()["verdict"]["verdict"] in ("replayable", "replayable_to_step", "cold")
    assert other.json()["error"] == {
        "code": "run_conflict",
        "message": "Run 'abc123' is already stored with different content.",
        "field": "run_id",
    }
    run = get(client, "runs/abc123")
    assert (run["messages"], run["tool_calls"], run["model_calls"]) == (6, 2, 3)


def test_all_nine_fields_of_the_session_file_are_answered(client):
    sent = json.loads(SESSION_FILE.read_bytes())
    post_run(client, SESSION_FILE)

    run, record = get(client, "runs/abc123"), get(client, "runs/abc123/record")
    steps = get(client, "runs/abc123/steps")["items"]

    assert run["session_id"] == sent["session_id"]
    assert run["started_at"] == "2026-02-17T14:23:01.000000+00:00"
    assert (run["input"], run["output"]) == (sent["user_input"], sent["final_output"])
    assert (run["model"], record["instructions"]) == (sent["model"], sent["instructions"])
    assert run["duration_ms"] == sent["duration_ms"]
    assert record["tool_calls"] == sent["tool_calls"]
    tools = [step for step in steps if step["kind"] == "tool"]
    assert [{"tool": step["name"], "args": step["arguments"]} for step in tools] == sent["tool_calls"]
    messages = [
        message for step in record["steps"] if step["kind"] == "model" for message in step["request"]["messages"]
    ]
    messages += [step["response"] for step in record["steps"] if step["kind"] == "model"]
    contents = sorted(part["content"] for message in messages for part in message["parts"] if "content" in part)
    assert contents == sorted(p["content"] for m in sent["messages"] for p in m["parts"] if "content" in p)


@each_sample
def test_a_record_posted_to_another_project_gives_an_equal_run(client, sample):
    accepted = post_run(client, sample).json()
    path = f"runs/{accepted['run_id']}"
    record = client.get(f"/api/v1/{path}/record").content
    other = project_client("other")

    answer = post_run(other, record)

    assert answer.status_code == 201, answer.content
    assert answer.json()["digest"] == accepted["digest"]
    assert other.get(f"/api/v1/{path}/record").content == record
    for part in ("", "/steps?limit=500", "/kit"):
        assert get(other, path + part) == get(client, path + part)
    mine, theirs = Run.objects.order_by("pk")
    assert load_run(mine) == load_run(theirs)


@each_sample
def test_a_record_changed_in_one_place_does_not_give_an_equal_run(client, sample):
    accepted = post_run(client, sample).json()
    record = client.get(f"/api/v1/runs/{accepted['run_id']}/record").json()
    record["steps"][-1]["duration_ms"] = 987654

    answer = post_run(project_client("other"), record)

    assert answer.status_code == 201
    assert answer.json()["digest"] != accepted["digest"]


def test_steps_come_in_pages(client):
    post_run(client, make_record("r", *(make_tool_step(arguments={"n": n}) for n in range(7))))
    found, cursor = [], ""
    for _ in range(4):
        page = get(client, f"runs/r/steps?limit=2{cursor}")
        found += [step["arguments"]["n"] for step in page["items"]]
        cursor = f"&cursor={page['next_cursor']}"

    assert found == list(range(7))
    assert page["next_cursor"] is None


def test_sessions_come_in_pages_newest_first(client):
    for n in range(7):
        post_run(client, make_record(f"r{n}", started_at=f"2026-02-03T0{n}:00:00Z"))
    found, cursor = [], ""
    for _ in range(4):
        page = get(client, f"sessions?limit=2{cursor}")
        found += [session["session_id"] for session in page["items"]]
        cursor = f"&cursor={page['next_cursor']}"

    assert found == [f"r{n}" for n in reversed(range(7))]
    assert page["next_cursor"] is None


def test_a_comparison_with_the_same_record_elsewhere_is_identical(client):
    post_run(client, make_record("a", make_tool_step(result="one")))
    post_run(client, make_record("b", make_tool_step(result="one")))
    post_run(client, make_record("c", make_tool_step(result="two")))

    assert get(client, "comparisons?left=a&right=b")["identical"] is True
    other = get(client, "comparisons?left=a&right=c")
    assert other["identical"] is False
    assert other["divergence"]["left_step"] == 1
