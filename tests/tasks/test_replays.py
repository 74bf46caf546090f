"""Asking for replays and cancelling them."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from sessions_app.core.errors import NotReplayable
from sessions_app.models import Replay
from sessions_app.services import leases, wakeups
from sessions_app.services.keys import create_key
from sessions_app.services.replays import cancel_replay, request_replay
from tests.tasks.incidents import make_project, make_run

AT_ONCE = 1.0  # seconds


def together(count: int, ask: Callable[[int], Any]) -> list[Any]:
    """All at the same time, on connections of their own."""

    def call(number: int) -> Any:
        try:
            return ask(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(call, range(count)))


@pytest.mark.django_db(transaction=True)
def test_ten_requests_at_once_get_the_numbers_one_to_ten():
    run = make_run(make_project())

    replays = together(10, lambda number: request_replay(run=run))

    assert sorted(replay.number for replay in replays) == list(range(1, 11))


@pytest.mark.django_db(transaction=True)
def test_ten_clicks_with_one_key_give_one_replay():
    run = make_run(make_project())

    replays = together(10, lambda number: request_replay(run=run, request_key="a click"))

    assert {replay.pk for replay in replays} == set(Replay.objects.values_list("pk", flat=True))
    assert Replay.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_key_for_two_runs_is_refused_and_no_accident():
    """At the same time, too: the second of both must not run into the constraint."""
    project = make_project()
    runs = [make_run(project, run_id=f"run {number}") for number in range(6)]

    def ask(number: int) -> str:
        try:
            return request_replay(run=runs[number], request_key="mine").replay_id
        except NotReplayable as refused:
            return str(refused)

    answers = together(6, ask)

    assert answers.count("The request key 'mine' was used for a replay of another run.") == 5
    assert Replay.objects.count() == 1


@pytest.mark.django_db
def test_the_same_key_in_another_project_is_another_replay():
    replays = [request_replay(run=make_run(make_project(slug)), request_key="mine") for slug in ("a", "b")]

    assert replays[0] != replays[1]


@pytest.mark.django_db
def test_a_mode_that_is_not_there_is_refused():
    with pytest.raises(NotReplayable, match="'guess' is not available"):
        request_replay(run=make_run(make_project()), mode="guess")


@pytest.mark.django_db
def test_a_queued_replay_is_cancelled_at_once():
    replay = cancel_replay(request_replay(run=make_run(make_project())))

    assert (replay.state, replay.verdict, replay.finished_at is None) == ("cancelled", "cancelled", False)
    assert leases.claim(replay.pk, "a") is None


@pytest.mark.django_db
def test_cancelling_what_is_over_changes_nothing():
    replay = request_replay(run=make_run(make_project()))
    held = leases.claim(replay.pk, "a")
    assert held is not None
    leases.finish(held, state="done", verdict="reproduced")
    before = Replay.objects.values().get(pk=replay.pk)

    cancel_replay(replay)

    assert Replay.objects.values().get(pk=replay.pk) == before


@pytest.fixture(params=["no socket", "refused", "silent"])
def broken_broker(request, settings, monkeypatch, tmp_path):
    """A Redis that is not there, one whose port is closed, and one that accepts and says nothing."""
    import socket

    from replay_web.celery import app

    silent = socket.create_server(("127.0.0.1", 0))
    port = silent.getsockname()[1]
    if request.param == "refused":
        silent.close()
    url = f"redis+socket://{tmp_path}/redis.sock" if request.param == "no socket" else f"redis://127.0.0.1:{port}/0"
    monkeypatch.setattr(app.conf, "broker_url", url)
    monkeypatch.setattr(app.conf, "broker_write_url", url)
    yield
    silent.close()


@pytest.mark.django_db(transaction=True)
def test_a_request_is_answered_at_once_without_a_broker(client, broken_broker):
    project = make_project()
    run = make_run(project)
    _, key = create_key(project=project, name="test", scope="full")
    headers = {"Authorization": f"Bearer {key}"}
    client.get(f"/api/v1/runs/{run.run_id}", headers=headers)  # loads what the first request loads

    started = time.monotonic()
    answer = client.post(
        f"/api/v1/runs/{run.run_id}/replays", {"mode": "recording"}, content_type="application/json", headers=headers
    )
    took = time.monotonic() - started

    assert (answer.status_code, took < AT_ONCE) == (202, True), took
    replay = Replay.objects.get(replay_id=answer.json()["replay_id"])
    assert (replay.state, wakeups.wake(replay)) == ("queued", False)
