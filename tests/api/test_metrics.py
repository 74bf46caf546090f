"""Numbers for those who watch: of the key's own project, and only numbers."""

import pytest

from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import create_key
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step, post_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    client = make_client(make_key(make_project()))
    post_run(client, make_record("one", make_tool_step(result="x"), status="ok", output="fine"))
    post_run(client, make_record("two", status="error", error="broke"))
    client.post("/api/v1/runs/two/cold-case", data={"reason": "gone"}, content_type="application/json")
    return client


def test_metrics_count_what_is_stored(client):
    lines = client.get("/metrics").content.decode().splitlines()

    assert 'replay_runs{status="ok"} 1' in lines
    assert 'replay_runs{status="error"} 1' in lines
    assert "replay_cold_cases 1" in lines
    assert "replay_oldest_queued_seconds 0.0" in lines


def test_metrics_are_of_the_keys_project_alone(client):
    other = make_client(make_key(make_project("other")))

    assert "replay_cold_cases 0" in other.get("/metrics").content.decode().splitlines()


def test_metrics_want_a_key_that_may_read(client):
    _, ingest = create_key(project=make_project("third"), name="x", scope=KeyScope.INGEST)

    assert make_client(ingest).get("/metrics").status_code == 403
    assert make_client(None).get("/metrics").status_code == 401
