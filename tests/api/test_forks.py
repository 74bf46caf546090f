"""Forks, answers by hand and breakpoints over the API."""

import json

import pytest

from sessions_app.models import Project, Replay, Run
from tests.api.test_routes import BAD_REASONS
from tests.builders import project_client, row_counts
from tests.services.forking import EMPTY_ANSWER, make_order, make_run, model_stop, pause, stop, tool_stop

pytestmark = pytest.mark.django_db
RUN = "/api/v1/runs/cancel_5521"


@pytest.fixture
def full():
    client = project_client()
    make_run(Project.objects.get())
    return client


def post(client, address, body):
    return client.post(address, json.dumps(body), content_type="application/json")


def queued(client, **changes):
    """A fork as it was asked for over the API."""
    return Replay.objects.get(replay_id=post(client, f"{RUN}/forks", make_order(**changes)).json()["replay_id"])


def test_a_fork_is_asked_for_and_read(full):
    answer = post(full, f"{RUN}/forks", make_order(at_step="step_2", breakpoints=[{"step": 4}]))

    assert answer.status_code == 202
    body = full.get(f"/api/v1/replays/{answer.json()['replay_id']}").json()
    assert answer.json() == {"replay_id": body["replay_id"], "fork_id": body["fork_id"]}
    assert (body["state"], body["mode"], body["queue"], body["run_of"]) == ("queued", "fork", "replays", "cancel_5521")
    assert (body["at_step"], body["changes"], body["expect"]) == (2, [EMPTY_ANSWER], {"contains": "sorry"})
    assert body["expectation"] == {"words": 'the outcome contains "sorry"', "met": None, "unproven": None}
    assert (body["hypothesis"], body["agent"], body["stopped_at"], body["sources"]) == (
        "It asks again.",
        None,
        None,
        {},
    )
    assert body["parent_digest"] == full.get(RUN).json()["digest"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("recorded_for_another_request", "Old model answers were reused"),
        ("by_hand", "The outcome was written by hand"),
        ("rule", "A rule gave the outcome"),
        ("no_difference", "The outcome is the original one"),
    ],
)
@pytest.mark.parametrize("met", [True, False])
def test_an_outcome_that_proves_nothing_has_its_reason_as_a_field(full, source, reason, met):
    replay = queued(full)
    Replay.objects.update(
        state="done", verdict="diverged", expectation_met=met, facts={"expectation": {"met": met, "source": source}}
    )
    unproven = {"code": source, "sentence": f"{reason}: it proves nothing about the agent"}
    said = {"words": 'the outcome contains "sorry"', "met": met, "unproven": unproven}

    assert full.get(f"/api/v1/replays/{replay.replay_id}").json()["expectation"] == said
    assert full.get(f"{RUN}/forks").json()["items"][0]["expectation"] == said
    assert full.get(f"/api/v1/replays/{replay.replay_id}/report").json()["replay"]["fork"]["unproven"] == unproven


def test_an_outcome_that_depends_on_code_which_did_not_run_is_said_not_to_be_judged(full):
    replay = queued(full)
    facts = {"expectation": {"met": None, "source": "code_not_run"}}
    Replay.objects.update(state="done", verdict="diverged", facts=facts)
    sentence = "Not judged: the outcome depends on code that did not run"

    said = full.get(f"/api/v1/replays/{replay.replay_id}").json()["expectation"]

    assert (said["met"], said["unproven"]) == (None, {"code": "code_not_run", "sentence": sentence})


def test_null_in_a_change_is_a_value(full):
    for value in (None, {"a": None}, [None]):
        assert queued(full, changes=[{**EMPTY_ANSWER, "value": value}]).order["changes"][0]["value"] == value


def test_a_run_is_resumed(full):
    answer = post(full, f"{RUN}/resume", {"at_step": 3})

    body = full.get(f"/api/v1/replays/{answer.json()['replay_id']}").json()
    assert (body["mode"], body["at_step"], body["changes"], body["expectation"]) == ("resume", 3, [], None)
    assert "_resume_" in body["fork_id"]


def test_a_run_is_sampled_only_where_there_is_a_live_model(full, settings):
    order = make_order(samples=3)
    refused = post(full, f"{RUN}/samples", order)
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "samples")

    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"

    assert post(full, f"{RUN}/samples", order).status_code == 202
    assert Replay.objects.get().mode == "sampling"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"at_step": 9}, "at_step"),
        ({"changes": "all"}, "changes"),
        ({"changes": [{**EMPTY_ANSWER, "step": 3}]}, "changes[0].step"),
        ({"hypothesis": 3}, "hypothesis"),
        ({"expect": {"contains": 5}}, "expect.contains"),
        ({"tools": {"live": ["lookup_order"]}}, "tools"),
        ({"tools": {"write": ["cancel_order"]}}, "tools.write"),
        ({"request_key": "x" * 121}, "request_key"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_field(full, changes, field):
    before = row_counts()

    answer = post(full, f"{RUN}/forks", make_order(**changes))

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert row_counts() == before


def test_a_tool_that_writes_cannot_be_asked_for(full, settings):
    settings.REPLAY_AGENTS = {"orders": "shop.agents:orders"}
    order = make_order(agent="orders", tools={"write": ["cancel_order"]})

    error = post(full, f"{RUN}/forks", order).json()["error"]

    assert (error["code"], error["field"]) == ("bad_fork", "tools.write")
    assert post(full, f"{RUN}/forks", order | {"tools": {"live": ["lookup_order"]}}).status_code == 202


@pytest.mark.parametrize("body", BAD_REASONS, ids=lambda body: repr(body[:24]))
@pytest.mark.parametrize("door", ["forks", "resume", "samples"])
def test_bodies_that_are_none_are_refused(full, door, body):
    answer = full.post(f"{RUN}/{door}", body, content_type="application/json")

    assert answer.status_code == 400, answer.content
    assert not Replay.objects.exists()


@pytest.mark.parametrize("value", [b'"\\u0000"', b'"\\ud800"', b"NaN", b"1e999", b"[" * 500 + b"]" * 500])
def test_a_value_that_cannot_be_stored_is_refused(full, value):
    order = json.dumps(make_order(changes=[{**EMPTY_ANSWER, "value": "HERE"}])).encode().replace(b'"HERE"', value)

    answer = full.post(f"{RUN}/forks", order, content_type="application/json")

    assert answer.status_code == 400, answer.content
    assert answer.json()["error"]["field"] == "changes"


def test_the_same_key_again_is_the_same_fork(full):
    order = make_order(request_key="k")

    assert post(full, f"{RUN}/forks", order).json() == post(full, f"{RUN}/forks", order).json()
    assert Replay.objects.count() == 1


def test_another_project_sees_no_fork_of_this_one(full):
    fork, other = queued(full), project_client("other")

    assert post(other, f"{RUN}/forks", make_order()).status_code == 404
    for action in ("answers", "continue", "step", "cancel"):
        assert post(other, f"/api/v1/replays/{fork.replay_id}/{action}", {"value": 1}).status_code == 404
    assert Replay.objects.get().state == "queued"


def test_forks_of_a_run_are_listed_with_what_became_of_them(full):
    first, second = queued(full), queued(full, expect="It asks again.")
    Replay.objects.filter(pk=second.pk).update(verdict="diverged", divergence={"step": 3, "path": "x", "recorded": 1})

    body = full.get(f"{RUN}/forks").json()

    assert body["next_cursor"] is None
    assert [item["replay_id"] for item in body["items"]] == [first.replay_id, second.replay_id]
    assert body["items"][1]["divergence"] == {"step": 3, "path": "x"}
    assert body["items"][0]["outcome"] == "queued"
    assert [(item["depth"], item["parent_run_id"]) for item in body["items"]] == [(1, "cancel_5521")] * 2


# --- waiting replays ---------------------------------------------------------------------------


def test_a_fork_that_stopped_is_answered(full):
    fork = stop(queued(full), tool_stop())
    address = f"/api/v1/replays/{fork.replay_id}"
    assert full.get(address).json()["stopped_at"]["name"] == "lookup_order"

    answer = post(full, f"{address}/answers", {"value": None, "at": 4})

    assert (answer.status_code, answer.json()["state"], answer.json()["stopped_at"]) == (202, "queued", None)
    assert Replay.objects.get().course["answers"] == [{"at": 4, "asked": "ab" * 32, "value": None}]
    assert post(full, f"{address}/answers", {"value": 1}).json()["error"]["field"] == "answer"


@pytest.mark.parametrize("body", [{}, {"value": 1, "not_found": True}, {"answer": {"text": "x"}}, {"value": "\0"}])
def test_an_answer_that_does_not_fit_is_refused(full, body):
    fork = stop(queued(full), tool_stop())

    assert post(full, f"/api/v1/replays/{fork.replay_id}/answers", body).status_code == 400
    assert Replay.objects.get().course == {}


@pytest.mark.parametrize(("action", "is_stepping"), [("continue", False), ("step", True)])
def test_a_paused_replay_goes_on(full, action, is_stepping):
    asked = post(full, f"{RUN}/replays", {"breakpoints": [{"tool": "lookup_order"}]}).json()
    paused = pause(Replay.objects.get(replay_id=asked["replay_id"]), tool_stop(at=2))
    address = f"/api/v1/replays/{paused.replay_id}"
    assert full.get(address).json()["state"] == "paused"

    answer = post(full, f"{address}/{action}", {})

    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    assert Replay.objects.get().course == {"passed": 2, "is_stepping": is_stepping}
    assert post(full, f"{address}/{action}", {}).json()["error"]["field"] == "state"


def test_an_answer_at_a_breakpoint_of_a_recording_gives_a_fork(full):
    asked = post(full, f"{RUN}/replays", {"breakpoints": [{"step": 3}]}).json()
    pause(Replay.objects.get(), model_stop())

    answer = post(full, f"/api/v1/replays/{asked['replay_id']}/answers", {"answer": {"text": "No."}})

    assert answer.json()["replay_id"] != asked["replay_id"]
    assert (answer.json()["mode"], answer.json()["at_step"]) == ("fork", 3)
    assert full.get(f"/api/v1/replays/{asked['replay_id']}").json()["state"] == "cancelled"


def test_a_paused_replay_is_cancelled_at_once(full):
    fork = pause(queued(full), tool_stop())

    assert post(full, f"/api/v1/replays/{fork.replay_id}/cancel", {}).json()["state"] == "cancelled"


# --- code --------------------------------------------------------------------------------------


def test_a_code_replay_is_asked_for(full, settings):
    wanted = {"mode": "code", "agent": "orders", "tools": {"live": ["lookup_order"]}, "breakpoints": [{"step": 2}]}
    assert post(full, f"{RUN}/replays", wanted).json()["error"]["field"] == "agent"
    settings.REPLAY_AGENTS = {"orders": "shop.agents:orders"}

    answer = post(full, f"{RUN}/replays", wanted)

    body = full.get(f"/api/v1/replays/{answer.json()['replay_id']}").json()
    assert (answer.status_code, body["mode"], body["queue"], body["agent"]) == (202, "code", "code", "orders")
    assert Replay.objects.get().order["tools"] == {"live": ["lookup_order"]}


def test_what_a_fork_made_is_read_like_any_run(full):
    """The fork is not run here: a stored run stands for what it makes."""
    fork = queued(full)
    made = make_run(fork.project, run_id="made")
    Replay.objects.filter(pk=fork.pk).update(produced_run=made, state="done", facts={"sources": {"recorded": 2}})

    item = full.get(f"{RUN}/forks").json()["items"][0]

    assert (item["run_id"], item["steps"], item["sources"]) == ("made", 5, {"recorded": 2})
    assert item["outcome"] == Run.objects.get(run_id="made").output_preview
