"""Real workers that are killed, stopped and left without a broker: every replay ends, once.

`TRIAL_SIZE=full` queues 40 replays and kills five workers; otherwise 24 and three.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from django.utils import timezone

from replay_web.celery import app
from replay_web.supervisor.processes import wait_gone
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import HELD_STATES
from sessions_app.services.replays import cancel_replay, request_replay
from sessions_app.services.wakeups import wake
from tests.tasks.incidents import make_probe, make_project, make_run, make_runs, queue_replays
from tests.tasks.workers import LEASE, OwnRedis, Worker, own_redis, wait_until, working

pytestmark = pytest.mark.django_db(transaction=True)
COUNT, KILLS = (40, 5) if os.environ.get("TRIAL_SIZE") == "full" else (24, 3)
PATIENCE = 60.0  # seconds, for a machine with other things to do
RECOVERY = LEASE + 15.0  # seconds
PROBING = "tests.tasks.probing_worker"


@pytest.fixture
def redis() -> Iterator[OwnRedis]:
    with own_redis() as server:
        server.start()
        yield server


@pytest.fixture(autouse=True)
def announced_there(redis, monkeypatch):
    """Our own messages go to the Redis that the test may kill."""
    url = f"redis+socket://{redis.socket}?virtual_host=0"
    monkeypatch.setattr(app.conf, "broker_url", url)
    monkeypatch.setattr(app.conf, "broker_write_url", url)


@pytest.fixture
def project() -> Project:
    return make_project()


def over() -> int:
    return Replay.objects.exclude(state__in=["queued", "claimed", "running"]).count()


def is_over(replay: Replay) -> bool:
    replay.refresh_from_db()
    return replay.is_over


def assert_each_done_once(count: int = COUNT) -> None:
    replays = list(Replay.objects.select_related("produced_run"))
    assert [replay.error for replay in replays if replay.state != "done"] == []
    assert len(replays) == count
    assert max(replay.attempt for replay in replays) <= KILLS + 1
    assert {replay.verdict for replay in replays} == {"reproduced"}
    produced = {replay.produced_run_id for replay in replays}
    assert len(produced) == count
    assert set(Run.objects.filter(origin="replay").values_list("pk", flat=True)) == produced


def test_nothing_is_lost_or_doubled_by_kills(project, redis):
    """Workers are killed at random moments of their work, in the middle Redis as well."""
    seed = int(os.environ.get("REPLAY_TEST_SEED") or random.randrange(10**6))
    dice = random.Random(seed)
    print(f"REPLAY_TEST_SEED={seed}")
    queue_replays(make_runs(project, COUNT))
    killed: list[tuple[int, datetime]] = []
    started = time.monotonic()
    # One replay may be under way at three kills, after which a worker rightly gives it up.
    patient = {"REPLAY_MAX_ATTEMPTS": str(KILLS + 1)}
    with working(Worker(redis.url, settings=patient)) as worker:
        for kill in range(KILLS):
            wait_for(over() + dice.randrange(1, 7))
            time.sleep(dice.uniform(0, 0.2))
            worker.kill()
            killed += [
                (pk, timezone.now()) for pk in Replay.objects.filter(state__in=HELD_STATES).values_list("pk", flat=True)
            ]
            if kill == KILLS // 2:
                redis.kill()
                redis.start()
            worker.start()
        wait_for(COUNT)
    recoveries = [recovery(Replay.objects.get(pk=pk), at) for pk, at in killed]
    print(f"{time.monotonic() - started:.1f} s; taken back after {sorted(round(one, 1) for one in recoveries)} s")
    assert_each_done_once()
    assert max(recoveries, default=0) < RECOVERY


def wait_for(number: int) -> None:
    wait_until(lambda: over() >= number, PATIENCE)


def recovery(replay: Replay, killed_at: datetime) -> float:
    """Seconds from the kill until somebody else could have the replay; 0 when its last commit was under way."""
    moments = [datetime.fromisoformat(text) for text in replay.takeovers]
    return min(((moment - killed_at).total_seconds() for moment in moments if moment > killed_at), default=0.0)


def test_replays_run_without_a_broker_all_the_time(project, redis):
    redis.kill()
    queue_replays(make_runs(project, COUNT))

    with working(Worker(redis.url)):
        wait_for(COUNT)

    assert_each_done_once()


def test_a_worker_that_slept_beyond_its_lease_changes_nothing(project, redis):
    """Stopped as a whole, then awake again after another worker has finished."""
    replay = request_replay(run=make_probe(project, "take_a_nap 1"))
    with working(Worker(redis.url, PROBING)) as sleeper:
        wait_until(lambda: Replay.objects.filter(progress_done=1).exists(), PATIENCE)
        os.killpg(sleeper.process.pid, signal.SIGSTOP)
        with working(Worker(redis.url, PROBING)):
            wait_until(lambda: is_over(replay), PATIENCE)
        first = Replay.objects.values().get(pk=replay.pk)
        os.killpg(sleeper.process.pid, signal.SIGCONT)
        fresh = request_replay(run=make_run(project))
        wait_until(lambda: is_over(fresh), PATIENCE)  # the sleeper works again

    assert Replay.objects.values().get(pk=replay.pk) == first
    assert (replay.state, replay.attempt, replay.fence) == ("done", 2, 3)


def test_wake_ups_may_be_lost_and_repeated(project, redis, monkeypatch):
    """Lost: the web process died between its commit and its message. Repeated: three are there at once."""
    with monkeypatch.context() as dying:
        dying.setattr("sessions_app.services.replays.wake", lambda replay: False)
        lost = request_replay(run=make_run(project))
    repeated = request_replay(run=make_run(project))
    for _ in range(2):
        assert wake(repeated)
    with working(Worker(redis.url, settings={"WORKER_THREADS": "4"})):
        wait_for(2)

    replays = [Replay.objects.get(pk=replay.pk) for replay in (lost, repeated)]
    assert [replay.attempt for replay in replays] == [1, 1]
    assert max(waited(replay) for replay in replays) < 15
    assert_each_done_once(2)


def waited(replay: Replay) -> float:
    assert replay.claimed_at is not None
    return (replay.claimed_at - replay.created_at).total_seconds()


def test_a_replay_ends_when_it_is_cancelled(project, redis):
    replay = request_replay(run=make_probe(project, "hold_the_interpreter"))
    with working(Worker(redis.url, PROBING)) as worker:
        wait_until(lambda: Replay.objects.filter(pk=replay.pk, progress_done=1).exists(), PATIENCE)
        busy = worker.children()

        cancel_replay(replay)

        assert wait_until(lambda: is_over(replay), 5) < 1.0
        assert wait_gone(busy, 5)
    assert (replay.state, replay.verdict, replay.error) == ("cancelled", "cancelled", None)


def test_a_replay_ends_when_its_time_is_over(project, redis):
    request_replay(run=make_run(project))  # the first one's imports would count against two seconds
    with working(Worker(redis.url, PROBING, {"REPLAY_TIME_LIMIT_SECONDS": "2"})) as worker:
        wait_for(1)
        replay = request_replay(run=make_probe(project, "loop_for_ever"))
        wait_until(worker.children, PATIENCE)
        busy = worker.children()

        wait_until(lambda: is_over(replay), PATIENCE)

        assert wait_gone(busy, 5)
    assert (replay.state, replay.error) == ("failed", "The replay took longer than 2 s.")


def test_a_worker_tells_its_processes_no_secret_and_leaves_none_behind(project, redis):
    request_replay(run=make_run(project))
    with working(Worker(redis.url, settings={"SECRET_KEY": "canary-of-the-worker"})) as worker:
        wait_for(1)
        children = worker.every_process()
        environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in children]
        worker.stop()

        assert worker.process.returncode == 0
    assert children
    assert [text for text in environments if b"canary" in text or b"_URL" in text or b"SECRET" in text] == []
    assert wait_gone(children, 5)
