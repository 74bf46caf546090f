"""`?wait=N`: an answer as soon as it has ended, else after N seconds; few wait at once, and they hold no connection."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore

import pytest
from django.db import connection

from sessions_app.api import waiting
from sessions_app.api.examples import RECORD
from sessions_app.models import Golden, GoldenRun, Replay, Run
from tests.api.test_real_server import ask, send
from tests.builders import make_record, make_tool_step, post_run, project_client


class Clock:
    """Time that passes only while somebody sleeps; what happens after so many sleeps."""

    def __init__(self, monkeypatch):
        self.now, self.sleeps, self.events = 100.0, 0, {}
        monkeypatch.setattr(waiting, "monotonic", lambda: self.now)
        monkeypatch.setattr(waiting, "sleep", self.sleep)

    def sleep(self, seconds):
        self.now += seconds
        self.sleeps += 1
        self.events.get(self.sleeps, lambda: None)()


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def queued(client):
    post_run(client, make_record("r", make_tool_step(result=1)))
    run = Run.objects.select_related("content").get()
    return Replay.objects.create(project=run.project, run=run, content=run.content, number=1)


def end(replay):
    Replay.objects.filter(pk=replay.pk).update(state="done", verdict="reproduced")


@pytest.mark.django_db
def test_the_answer_comes_as_soon_as_the_replay_has_ended(clock):
    client = project_client()
    replay = queued(client)
    clock.events[3] = lambda: end(replay)

    answer = client.get(f"/api/v1/replays/{replay.replay_id}?wait=60").json()

    assert (answer["state"], answer["verdict"]) == ("done", "reproduced")
    assert clock.sleeps == 3


@pytest.mark.django_db
def test_what_goes_on_is_answered_with_its_state_after_that_time(clock):
    client = project_client()
    replay = queued(client)

    answer = client.get(f"/api/v1/replays/{replay.replay_id}?wait=2.1")

    assert (answer.status_code, answer.json()["state"]) == (200, "queued")
    assert clock.now == pytest.approx(102.1)


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["", "?wait=0"])
def test_without_waiting_nothing_waits(clock, query):
    client = project_client()
    replay = queued(client)

    assert client.get(f"/api/v1/replays/{replay.replay_id}{query}").json()["state"] == "queued"
    assert clock.sleeps == 0


@pytest.mark.django_db
def test_what_is_over_is_answered_at_once(clock):
    client = project_client()
    replay = queued(client)
    end(replay)

    assert client.get(f"/api/v1/replays/{replay.replay_id}?wait=60").json()["state"] == "done"
    assert clock.sleeps == 0


@pytest.mark.django_db
def test_a_golden_run_is_waited_for_too(clock):
    client = project_client()
    replay = queued(client)
    golden = Golden.objects.create(project=replay.project, run=replay.run, name="kept", checks=[{"kind": "no_write"}])
    run = GoldenRun.objects.create(golden=golden, replay=replay)
    clock.events[2] = lambda: end(replay)

    answer = client.get(f"/api/v1/golden-runs/{run.golden_run_id}?wait=30").json()

    assert (answer["state"], clock.sleeps) == ("done", 2)
    assert answer["result"] is not None


@pytest.mark.django_db
def test_a_replay_that_is_deleted_meanwhile_is_not_found(clock):
    client = project_client()
    replay = queued(client)
    clock.events[1] = replay.delete

    assert client.get(f"/api/v1/replays/{replay.replay_id}?wait=30").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("wait", ["61", "-1", "long", "nan"])
def test_a_wait_that_cannot_be_is_refused(wait):
    client = project_client()
    replay = queued(client)

    answer = client.get(f"/api/v1/replays/{replay.replay_id}?wait={wait}")

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "wait")


@pytest.mark.django_db
def test_where_as_many_wait_as_may_others_are_told_to_come_back(clock, monkeypatch):
    client = project_client()
    replay = queued(client)
    monkeypatch.setattr(waiting, "_ROOM", BoundedSemaphore(0))

    answer = client.get(f"/api/v1/replays/{replay.replay_id}?wait=5")

    assert (answer.status_code, answer["Retry-After"]) == (429, "1")
    assert answer.json()["error"]["code"] == "too_many_waiting"
    assert client.get(f"/api/v1/replays/{replay.replay_id}").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_who_waits_holds_no_connection(clock):
    client = project_client()
    replay = queued(client)
    held = []
    clock.events[1] = lambda: held.append(connection.connection)

    assert client.get(f"/api/v1/replays/{replay.replay_id}?wait=0.5").status_code == 200
    assert held == [None]


def test_four_who_wait_leave_the_server_free_and_are_answered_when_it_ends(running_instance):
    """It pauses at a breakpoint, so it has not ended until it is cancelled."""
    send(running_instance, json.dumps({**RECORD, "run_id": "waited-for"}).encode())
    body = json.dumps({"mode": "recording", "breakpoints": [{"step": 1}]}).encode()
    status, made = ask(running_instance, "POST", "/api/v1/runs/waited-for/replays", body)
    assert status == 202, made
    address = f"/api/v1/replays/{json.loads(made)['replay_id']}"

    with ThreadPoolExecutor(5) as threads:
        waiting_ones = [threads.submit(ask, running_instance, "GET", f"{address}?wait=25") for _ in range(4)]
        time.sleep(2)
        assert not any(each.done() for each in waiting_ones)
        assert ask(running_instance, "GET", f"{address}?wait=25")[0] == 429
        began = time.monotonic()
        assert {ask(running_instance, "GET", "/api/v1/runs")[0] for _ in range(10)} == {200}
        assert time.monotonic() - began < 5
        ask(running_instance, "POST", f"{address}/cancel")
        ended = [json.loads(each.result()[1])["state"] for each in waiting_ones]

    assert ended == ["cancelled"] * 4
    assert time.monotonic() - began < 20
