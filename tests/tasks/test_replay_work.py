"""One worker and one replay, from the claim to the stored result; with replays that go wrong in every way."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from replay_web.supervisor.processes import wait_gone
from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Replay, Run
from sessions_app.services import leases, replay_results, replay_work
from sessions_app.services.replays import cancel_replay, request_replay
from tests.agents.probing_child import ProbingChild, probing_pool
from tests.agents.talking import example
from tests.losing import lose_payloads
from tests.tasks.incidents import make_probe, make_project, make_run
from tests.tasks.workers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
SOON = 5.0  # seconds


@pytest.fixture(scope="module")
def children() -> Iterator[ChildPool]:
    pool = probing_pool()
    yield pool
    pool.close()


@pytest.fixture
def project() -> Project:
    return make_project()


def work(replay: Replay, children: ChildPool, worker: str = "a") -> Replay:
    assert replay_work.work_on(replay.pk, worker=worker, children=children)
    replay.refresh_from_db()
    return replay


def outcome(replay: Replay) -> tuple[str, str | None, str | None]:
    return replay.state, replay.verdict, replay.error


def produced(replay: Replay) -> list[str]:
    return list(Run.objects.filter(parent_run_id=replay.run.run_id).values_list("run_id", flat=True))


def test_a_replay_leaves_one_produced_run(project, children):
    replay = work(request_replay(run=make_run(project)), children)

    assert outcome(replay) == ("done", "reproduced", None)
    assert (replay.attempt, replay.live_calls, replay.lease_until) == (1, 0, None)
    assert replay.progress_done == replay.progress_total == 5
    assert replay.produced_run is not None
    assert produced(replay) == [replay.produced_run.run_id] == ["cancel_5521_replay_1"]
    assert load_run(replay.produced_run).parent.run_id == "cancel_5521"
    assert "audit hook" in replay.facts["isolation"]


def test_three_workers_told_at_once_do_it_once(project, children):
    replay = request_replay(run=make_run(project))

    def told(worker: int) -> bool:
        try:
            return replay_work.work_on(replay.pk, worker=str(worker), children=children)
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as threads:
        worked = list(threads.map(told, range(3)))

    replay.refresh_from_db()
    assert (sorted(worked), outcome(replay)[0], replay.attempt) == ([False, False, True], "done", 1)
    assert len(produced(replay)) == 1


def test_a_cold_run_says_why_it_cannot_be_replayed(project, children):
    """No model answers at all: the judge calls it cold."""
    record = example()
    record["steps"] = [step for step in record["steps"] if step["kind"] == "tool"][:1]
    record["steps"][0].pop("parent")
    run = make_run(project, record, run_id="cold", final=None)
    assert run.verdict == "cold"

    replay = work(request_replay(run=run), children)

    assert outcome(replay) == ("failed", "could_not_run", run.verdict_reasons[0]["message"])
    assert produced(replay) == []


def test_lost_payloads_are_named(project, children):
    run = make_run(project)
    lose_payloads(project)

    state, verdict, error = outcome(work(request_replay(run=run), children))

    assert (state, verdict) == ("failed", "could_not_run")
    assert error is not None
    assert "is missing or damaged" in error


def test_what_replayed_code_raises_fails_the_replay(project, children):
    replay = work(request_replay(run=make_probe(project, "eat_memory")), children)

    assert outcome(replay) == ("failed", "could_not_run", "MemoryError: ")


def test_poison_is_tried_three_times_and_said_to_have_crashed(project, children):
    replay = request_replay(run=make_probe(project, "die 11"))
    reason = "The replay process died (signal 11)."

    states = [work(replay, children).state for _ in range(3)]

    assert states == ["queued", "queued", "crashed"]
    assert (outcome(replay), replay.attempt) == (("crashed", "could_not_run", reason), 3)
    assert work(request_replay(run=make_run(project)), children).state == "done"  # the next one is not harmed


def test_a_replay_that_takes_too_long_is_ended(project, settings):
    settings.REPLAY_TIME_LIMIT_SECONDS = 1
    pool, started = watched_pool()
    replay = request_replay(run=make_probe(project, "loop_for_ever"))

    began = time.monotonic()
    work(replay, pool)

    assert time.monotonic() - began < 1 + SOON
    assert outcome(replay) == ("failed", "could_not_run", "The replay took longer than 1 s.")
    assert wait_gone(started, 0.1)


def watched_pool() -> tuple[ChildPool, list[int]]:
    """And the pids of all children that it starts."""
    pids: list[int] = []

    def start() -> ProbingChild:
        child = ProbingChild()
        pids.append(child.pid)
        return child

    return ChildPool(start), pids


def in_thread(work: Callable[[], Any]) -> threading.Thread:
    def call() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=call)
    thread.start()
    return thread


@pytest.mark.parametrize("command", ["take_a_nap 60", "hold_the_interpreter"])
def test_a_running_replay_is_cancelled_within_a_second(project, command):
    pool, started = watched_pool()
    replay = request_replay(run=make_probe(project, command))
    worker = in_thread(lambda: replay_work.work_on(replay.pk, worker="a", children=pool))
    wait_until(lambda: Replay.objects.filter(pk=replay.pk, progress_done=1).exists(), 20)

    cancel_replay(replay)

    assert wait_until(lambda: Replay.objects.filter(pk=replay.pk, state="cancelled").exists(), SOON) < 1.0
    assert wait_gone(started, SOON)
    worker.join()
    replay.refresh_from_db()
    assert (replay.verdict, replay.attempt, produced(replay)) == ("cancelled", 1, [])


def test_a_result_that_comes_too_late_is_not_stored(project, children, monkeypatch):
    """Between the last beat and the result somebody else has taken the replay over."""
    replay = request_replay(run=make_run(project))
    real = replay_work.store_result

    def store_late(late: Replay, result: Any) -> None:
        Replay.objects.filter(pk=late.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
        assert leases.take_back_expired() == 1
        real(late, result)

    monkeypatch.setattr(replay_work, "store_result", store_late)
    work(replay, children)

    assert (replay.state, replay.attempt, replay.produced_run, produced(replay)) == ("queued", 1, None, [])

    monkeypatch.undo()
    work(replay, children, worker="b")
    assert (replay.state, replay.attempt, replay.worker, len(replay.takeovers)) == ("done", 2, "b", 1)
    assert len(produced(replay)) == 1


def test_a_recording_keeps_its_name_before_a_produced_run(project, children):
    """Somebody sent a recording under the very id that the produced run would get, one that is still running."""
    replay = request_replay(run=make_run(project))
    theirs = make_run(project, run_id="cancel_5521_replay_1", status="running")

    work(replay, children)

    assert replay.state == "done"
    assert replay.produced_run.run_id == f"cancel_5521_replay_1_{replay.replay_id}"
    assert Run.objects.get(run_id="cancel_5521_replay_1").pk == theirs.pk


def test_long_ids_that_begin_alike_do_not_collide(project, children):
    runs = [make_run(project, run_id="x" * 505 + end) for end in "ab"]

    replays = [work(request_replay(run=run), children) for run in runs]

    assert [replay.state for replay in replays] == ["done", "done"]
    assert len({replay.produced_run_id for replay in replays}) == 2


def test_a_fault_of_ours_hands_the_replay_back_with_its_place(project, children, monkeypatch, caplog):
    """At once, and not when the lease is over; and the log holds no payload."""
    replay = request_replay(run=make_run(project))

    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("secret of the payload")

    monkeypatch.setattr(replay_results, "store_assembled", fail)
    states = [work(replay, children).state for _ in range(3)]

    assert states == ["queued", "queued", "crashed"]
    assert replay.error.startswith("The worker failed (ValueError in fail, line ")
    assert "secret" not in replay.error + caplog.text
