"""Who may work on a replay, and whose result counts."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from sessions_app.core.errors import LeaseLost
from sessions_app.models import Replay
from sessions_app.models.replays import ReplayState
from sessions_app.services import leases
from sessions_app.services.replays import cancel_replay
from tests.tasks.incidents import make_project, make_run, queue_replays

pytestmark = pytest.mark.django_db


@pytest.fixture
def replay() -> Replay:
    [queued] = queue_replays([make_run(make_project())])
    return queued


def claimed(replay: Replay, worker: str = "a") -> Replay:
    taken = leases.claim(replay.pk, worker)
    assert taken is not None
    return taken


def expire(replay: Replay) -> None:
    Replay.objects.filter(pk=replay.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def facts(replay: Replay) -> tuple[Any, ...]:
    replay.refresh_from_db()
    return replay.state, replay.attempt, replay.worker, len(replay.takeovers)


@pytest.mark.django_db(transaction=True)
def test_of_ten_claimers_one_wins():
    [replay] = queue_replays([make_run(make_project())])

    def try_it(worker: int) -> bool:
        try:
            return leases.claim(replay.pk, str(worker)) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(10) as threads:
        won = list(threads.map(try_it, range(10)))

    assert won.count(True) == 1
    assert facts(replay) == ("claimed", 1, str(won.index(True)), 0)


def test_an_expired_lease_goes_to_another_worker(replay):
    claimed(replay)
    expire(replay)

    assert leases.take_back_expired() == 1
    assert facts(replay) == ("queued", 1, "a", 1)
    claimed(replay, "b")

    assert facts(replay) == ("claimed", 2, "b", 1)


def test_a_lease_that_is_kept_is_not_taken(replay):
    held = claimed(replay)
    expire(replay)

    assert leases.beat(held, done=1, total=5) is False

    assert leases.take_back_expired() == 0
    assert facts(replay) == ("running", 1, "a", 0)
    assert (replay.progress_done, replay.progress_total) == (1, 5)


@pytest.mark.parametrize("again", [False, True], ids=["queued again", "taken by another"])
def test_who_lost_the_lease_changes_nothing(replay, again):
    late = claimed(replay)
    expire(replay)
    leases.take_back_expired()
    if again:
        claimed(replay, "b")
    before = Replay.objects.values().get(pk=replay.pk)

    with pytest.raises(LeaseLost):
        leases.beat(late, done=3, total=5)
    with pytest.raises(LeaseLost):
        leases.finish(late, state=ReplayState.DONE, verdict="reproduced")
    leases.give_up(late, reason="nobody asked")

    assert Replay.objects.values().get(pk=replay.pk) == before


def test_a_result_is_written_once(replay):
    held = claimed(replay)
    leases.finish(held, state=ReplayState.DONE, verdict="reproduced")

    with pytest.raises(LeaseLost):
        leases.finish(held, state=ReplayState.FAILED, verdict="diverged")

    assert (facts(replay)[0], replay.verdict) == ("done", "reproduced")


def test_the_third_death_is_the_last(replay):
    for number in (1, 2):
        leases.give_up(claimed(replay), reason="The replay process died (signal 11).")
        assert facts(replay) == ("queued", number, "a", number)

    leases.give_up(claimed(replay), reason="The replay process died (signal 11).")

    assert facts(replay)[:2] == ("crashed", 3)
    assert (replay.verdict, replay.error) == ("could_not_run", "The replay process died (signal 11).")
    assert replay.finished_at is not None
    assert leases.claim(replay.pk, "b") is None


def test_a_worker_that_went_silent_three_times_is_the_last_too(replay):
    for _ in range(3):
        claimed(replay)
        expire(replay)
        leases.take_back_expired()

    assert (facts(replay)[:2], replay.error) == (("crashed", 3), "The worker stopped answering.")


@pytest.mark.parametrize("how", ["expired", "given up"])
def test_a_cancelled_replay_is_not_tried_again(replay, how):
    held = claimed(replay)
    cancel_replay(replay)
    if how == "expired":
        expire(replay)
        leases.take_back_expired()
    else:
        leases.give_up(held, reason="The replay process died.")

    assert (facts(replay)[0], replay.verdict) == ("cancelled", "cancelled")


def test_a_beat_tells_of_the_wish_to_cancel(replay):
    held = claimed(replay)
    cancel_replay(replay)

    assert leases.beat(held, done=0, total=5) is True


def test_what_nobody_took_up_is_announced_again(replay):
    assert leases.unheard() == []  # it was announced as it was queued

    Replay.objects.update(woken_at=timezone.now() - timedelta(seconds=11))
    assert leases.unheard() == [replay]
    assert leases.unheard() == []


def test_what_was_never_announced_is_announced_at_once(replay):
    leases.give_up(claimed(replay), reason="died")

    assert leases.unheard() == [replay]
