"""Several recordings in one request."""

import pytest

from sessions_app.models import Run, StoredPayload
from tests.builders import make_record, post_run, project_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    return project_client()


def test_a_batch_is_stored_and_answered_in_its_order(client):
    answer = post_run(client, {"runs": [make_record("b"), make_record("a")]})

    assert answer.status_code == 201
    assert [item["run_id"] for item in answer.json()["items"]] == ["b", "a"]
    assert post_run(client, {"runs": [make_record("b"), make_record("a")]}).status_code == 200


def test_a_batch_with_one_bad_recording_stores_nothing_and_names_it(client):
    bad = make_record("c", {"kind": "guess"})

    answer = post_run(client, {"runs": [make_record("a"), make_record("b"), bad]})

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "runs[2].steps[0].kind")
    assert (Run.objects.count(), StoredPayload.objects.count()) == (0, 0)


def test_a_batch_with_a_conflict_stores_nothing(client):
    post_run(client, make_record("b", output="one"))

    answer = post_run(client, {"runs": [make_record("a"), make_record("b", output="two")]})

    assert answer.status_code == 409
    assert [run.run_id for run in Run.objects.all()] == ["b"]


def test_an_empty_batch_is_refused(client):
    assert post_run(client, {"runs": []}).json()["error"]["field"] == "runs"


def test_a_replay_may_be_asked_for_without_a_body(client):
    post_run(client, make_record("a"))

    assert client.generic("POST", "/api/v1/runs/a/replays", b"").status_code == 202
