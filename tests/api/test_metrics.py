"""Numbers for those who watch: of the key's own project, and only numbers."""

from datetime import timedelta

import pytest
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from sessions_app.models import Replay
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

    assert 'replay_runs{status="ok"} 1.0' in lines
    assert 'replay_runs{status="error"} 1.0' in lines
    assert "replay_cold_cases 1.0" in lines
    assert "replay_oldest_queued_seconds 0.0" in lines


def test_metrics_say_how_long_replays_waited_and_ran(client):
    at = timezone.now()
    for seconds in (0.2, 3, 400):
        replay_id = order(client)
        ended = at + timedelta(seconds=1 + seconds)
        Replay.objects.filter(replay_id=replay_id).update(
            state="done", created_at=at, claimed_at=at + timedelta(seconds=1), finished_at=ended
        )
    order(client)

    metrics = {family.name: family for family in text_string_to_metric_families(client.get("/metrics").text)}
    ran, waited = (up_to(metrics[name]) for name in ("replay_run_seconds", "replay_queued_seconds"))
    total = [sample.value for sample in metrics["replay_run_seconds"].samples if sample.name.endswith("_sum")]

    assert [ran[end] for end in ("0.1", "0.25", "2.5", "5.0", "300.0", "+Inf")] == [0, 1, 1, 2, 2, 3]
    assert total == [pytest.approx(403.2)]
    assert (waited["0.5"], waited["1.0"]) == (0, 3)


def order(client):
    return client.post("/api/v1/runs/one/replays", data={}, content_type="application/json").json()["replay_id"]


def up_to(histogram):
    return {sample.labels["le"]: sample.value for sample in histogram.samples if "le" in sample.labels}


def test_metrics_are_of_the_keys_project_alone(client):
    other = make_client(make_key(make_project("other")))

    assert "replay_cold_cases 0.0" in other.get("/metrics").content.decode().splitlines()


def test_metrics_want_a_key_that_may_read(client):
    _, ingest = create_key(project=make_project("third"), name="x", scope=KeyScope.INGEST)

    assert make_client(ingest).get("/metrics").status_code == 403
    assert make_client(None).get("/metrics").status_code == 401
