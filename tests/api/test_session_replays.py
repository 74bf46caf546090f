"""Sessions replayed as a whole over the API."""

import json

import pytest

from sessions_app.models import Replay, SessionReplay
from tests.builders import make_record, make_tool_step, post_run, project_client
from tests.contradicting import turns_that_contradict
from tests.proofs import make_proof

pytestmark = pytest.mark.django_db
ASK = "/api/v1/sessions/chat/replays"


@pytest.fixture
def full():
    client = project_client()
    for run_id in ("second", "first"):
        post_run(client, make_record(run_id, make_tool_step(result="one"), session_id="chat"))
    return client


def post(client, address, body=None):
    return client.post(address, json.dumps(body or {}), content_type="application/json")


def test_a_session_is_replayed_and_read(full):
    answer = post(full, ASK)

    assert answer.status_code == 202
    asked, replays = answer.json()["session_replay_id"], answer.json()["replays"]
    assert [each["run_id"] for each in replays] == ["second", "first"]
    body = full.get(f"/api/v1/session-replays/{asked}").json()
    assert (body["state"], body["verdict"], body["words"]) == ("queued", None, "0 of 2 runs have finished")
    assert [run["replay_id"] for run in body["runs"]] == [each["replay_id"] for each in replays]
    for each in replays:
        replay = full.get(f"/api/v1/replays/{each['replay_id']}").json()
        assert (replay["session_replay_id"], replay["run_of"], replay["number"]) == (asked, each["run_id"], 1)


def test_a_replay_that_was_asked_for_alone_belongs_to_none(full):
    replay_id = post(full, "/api/v1/runs/first/replays").json()["replay_id"]

    assert full.get(f"/api/v1/replays/{replay_id}").json()["session_replay_id"] is None


def test_the_body_may_be_left_out_and_is_that_of_a_replay(full):
    assert full.post(ASK, content_type="application/json").status_code == 202
    refused = post(full, ASK, {"mode": "code"})

    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "agent")
    assert SessionReplay.objects.count() == 1


def test_the_first_run_that_is_not_reproduced_is_named(full):
    asked = post(full, ASK).json()
    found = {"step": 1, "path": "args.q", "recorded": 1, "replayed": 2}
    Replay.objects.filter(run__run_id="second").update(state="done", verdict="diverged", divergence=found)
    Replay.objects.filter(run__run_id="first").update(state="failed", verdict="could_not_run", error="no agent")

    body = full.get(f"/api/v1/session-replays/{asked['session_replay_id']}").json()

    assert (body["state"], body["verdict"]) == ("done", "diverged")
    assert body["words"] == "0 of 2 runs reproduced, 1 diverged, 1 could not run"
    assert body["first_not_reproduced"] == {**asked["replays"][0], "step": 1}
    assert body["runs"][1]["words"] == "Could not run: no agent"


def test_a_session_whose_runs_contradict_each_other_is_contradictory_everywhere():
    client = project_client()
    for turn in turns_that_contradict():
        post_run(client, turn)
    asked = post(client, ASK).json()["session_replay_id"]
    Replay.objects.update(state="done", verdict="reproduced", facts={"proof": make_proof(1).to_json()})

    body = client.get(f"/api/v1/session-replays/{asked}").json()

    place = {"run_id": "turn_2", "step": 1, "path": "messages[1].parts[0].content"}
    [found] = body["contradictions"]
    words = f"All 2 runs reproduced, but they contradict each other: {found['words']}"
    assert (body["verdict"], body["words"]) == ("contradictory", words)
    assert found == {**place, "other_run_id": "turn_1", "other_step": 1, "words": found["words"]}
    assert (body["first_not_reproduced"]["run_id"], body["first_not_reproduced"]["step"]) == ("turn_2", 1)
    for form in ("txt", "md", "html", "json"):
        assert words in client.get(f"/api/v1/session-replays/{asked}/report?format={form}").content.decode()


def test_cancelling_cancels_all_that_waits(full):
    asked = post(full, ASK).json()["session_replay_id"]

    answer = post(full, f"/api/v1/session-replays/{asked}/cancel")

    assert (answer.status_code, answer.json()["state"], answer.json()["words"]) == (202, "cancelled", "Cancelled")
    assert set(Replay.objects.values_list("state", flat=True)) == {"cancelled"}


@pytest.mark.parametrize(
    ("suffix", "media_type", "words"),
    [
        ("json", "application/json", '"title":"Session Reproduction Report"'),
        ("md", "text/markdown; charset=utf-8", "## Session Reproduction Report"),
        ("txt", "text/plain; charset=utf-8", "Session Reproduction Report\n===="),
        ("html", "text/html; charset=utf-8", "<h1>0 of 2 runs have finished</h1>"),
    ],
)
def test_the_report_comes_in_four_forms(full, suffix, media_type, words):
    asked = post(full, ASK).json()["session_replay_id"]

    answer = full.get(f"/api/v1/session-replays/{asked}/report?format={suffix}")

    assert (answer.status_code, answer["Content-Type"]) == (200, media_type)
    assert words in answer.content.decode()


def test_an_unknown_form_is_refused(full):
    asked = post(full, ASK).json()["session_replay_id"]

    assert full.get(f"/api/v1/session-replays/{asked}/report?format=pdf").status_code == 400


def test_recorded_text_is_never_markup_in_the_report():
    client = project_client()
    post_run(client, make_record("<script>x</script>", make_tool_step(result="one"), session_id="<b>chat</b>"))
    asked = post(client, "/api/v1/sessions/%3Cb%3Echat%3C%2Fb%3E/replays").json()["session_replay_id"]

    page = client.get(f"/api/v1/session-replays/{asked}/report?format=html").content.decode()

    assert "&lt;script&gt;x" in page
    assert "<script>x" not in page
    assert "<b>chat" not in page


def test_a_session_whose_id_holds_a_slash_is_found():
    client = project_client()
    post_run(client, make_record("r", make_tool_step(result="one"), session_id="team/chat"))

    assert post(client, "/api/v1/sessions/team/chat/replays").status_code == 202


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("/api/v1/runs/goes_on/replays", {}),
        ("/api/v1/runs/goes_on/resume", {"at_step": 1}),
        ("/api/v1/sessions/chat/replays", {}),
    ],
)
def test_a_run_that_has_not_ended_is_not_replayed(full, address, body):
    post_run(full, make_record("goes_on", make_tool_step(result="one"), session_id="chat", status="running"))

    answer = post(full, address, body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "still_running")
    assert answer.json()["error"]["message"].startswith("Run 'goes_on' has not ended;")
    assert not Replay.objects.exists()
