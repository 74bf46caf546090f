"""Failure groups over the API: what is one group, what becomes of it with code of today."""

import json

import pytest

from replay_goldens.trace import OF_ANOTHER_REQUEST
from sessions_app.models import Replay, Run
from tests.builders import make_record, make_tool_step, post_run, project_client

pytestmark = pytest.mark.django_db
MODEL = {
    "kind": "model",
    "request": {"messages": [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Find it."}]}]},
    "response": {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "find", "args": {}}]},
}
LATE = {"type": "TimeoutError", "message": "no answer after 60 s"}


@pytest.fixture(autouse=True)
def agents(settings):
    settings.REPLAY_AGENTS = {"old": "shop:old", "new": "shop:new"}


@pytest.fixture
def shop():
    """Two runs that were late, one that was refused, one that went well."""
    client = project_client()
    for name, error in (("late", LATE), ("later", {**LATE, "message": "no answer after 90 s"})):
        post_run(client, run_of(name, status="error", error=error, agent={"name": "shop"}))
    post_run(client, run_of("refused", status="error", error={"type": "PermissionError", "message": "no"}))
    post_run(client, run_of("well", output="Found."))
    return client


def run_of(run_id, **fields):
    return make_record(run_id, MODEL, make_tool_step("find", result=["a"]), **fields)


def groups(client, query=""):
    return client.get(f"/api/v1/failure-groups{query}").json()["items"]


def replay(client, **body):
    return client.post("/api/v1/failure-groups/replays", json.dumps(body), content_type="application/json")


def end(run_id, client, sources=(), **fields):
    """What a worker leaves behind."""
    post_run(client, run_of(run_id, origin="replay", **fields))
    queued = Replay.objects.filter(state="queued").earliest("pk")
    produced = Run.objects.get(run_id=run_id)
    facts = {"sources": dict.fromkeys(sources, 1)}
    Replay.objects.filter(pk=queued.pk).update(state="done", verdict="diverged", produced_run=produced, facts=facts)


def outcomes(client):
    return {each["representative"]: {a["agent"]: a["outcome"] for a in each["attempts"]} for each in groups(client)}


def test_runs_that_failed_alike_are_one_group_and_the_newest_stands_for_it(shop):
    first, second = groups(shop)

    assert (first["agent_name"], first["runs"], first["representative"]) == ("shop", 2, "later")
    assert first["signs"] == ["Ended without an answer: TimeoutError: no answer after … s"]
    assert (second["runs"], second["representative"]) == (1, "refused")
    assert [each["representative"] for each in groups(shop, "?q=run:refused")] == ["refused"]


def test_representatives_are_replayed_and_shown_as_fixed_or_not(shop):
    queued = replay(shop, agents=["new", "old"]).json()["replays"]
    assert [each["run_id"] for each in queued] == ["later", "later", "refused", "refused"]
    assert outcomes(shop)["later"] == {"new": None, "old": None}

    end("repaired", shop, output="Found.")
    end("as before", shop, status="error", error=LATE)
    end("another", shop, status="error", error={"type": "KeyError", "message": "'id'"})
    Replay.objects.filter(state="queued").update(state="failed", error="no such module")

    assert outcomes(shop) == {
        "later": {"new": "fixed", "old": "still_fails"},
        "refused": {"new": "fails_otherwise", "old": "could_not_run"},
    }


def test_a_run_that_rests_on_answers_to_other_requests_is_neither_fixed_nor_not(shop):
    """Control: the same end on answers to the recorded requests. An error that ended it, code raised."""
    replay(shop, agents=["new", "old"])
    end("answered", shop, sources=["recorded", "recorded_for_another_request"], output="Found.")
    end("asked again", shop, sources=["recorded", "own_code"], output="Found.")
    end("broken", shop, sources=["recorded_for_another_request"], status="error", error=LATE)

    later, refused = ({each["agent"]: each for each in group["attempts"]} for group in groups(shop))
    assert [later["new"]["outcome"], later["old"]["outcome"]] == ["not_judged", "fixed"]
    assert [later["new"]["why"], later["old"]["why"]] == [OF_ANOTHER_REQUEST, None]
    assert refused["new"]["outcome"] == "fails_otherwise"


def test_the_newest_attempt_counts(shop):
    for name, fields in (("bad", {"status": "error", "error": LATE}), ("good", {"output": "Found."})):
        replay(shop, agents=["new"], runs=["later"])
        end(name, shop, **fields)

    assert outcomes(shop)["later"] == {"new": "fixed"}


def test_replays_of_the_recording_or_that_stop_say_nothing_of_a_fix(shop):
    for order in ({}, {"mode": "code", "agent": "new"}):
        shop.post("/api/v1/runs/later/replays", json.dumps(order), content_type="application/json")

    assert outcomes(shop)["later"] == {}


@pytest.mark.parametrize(
    ("body", "field"),
    [({"agents": []}, "agents"), ({"agents": ["new"], "runs": []}, "runs"), ({"agents": ["new", "nobody"]}, "agent")],
)
def test_what_cannot_be_asked_for_leaves_nothing_behind(shop, body, field):
    answer = replay(shop, **body)

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert not Replay.objects.exists()
