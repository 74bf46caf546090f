"""The thread of a worker that makes runs of spans."""

import threading
from collections.abc import Iterator

import pytest

from sessions_app.tasks import spans
from tests.tasks.workers import wait_until


class Rounds:
    """Stands for the making of runs: each round tells that it began and waits until it may go on."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_go_on = threading.Semaphore(0)

    def __call__(self) -> int:
        self.begun += 1
        assert self.may_go_on.acquire(timeout=10)
        return 0


@pytest.fixture
def rounds(monkeypatch, settings) -> Iterator[Rounds]:
    made = Rounds()
    settings.REPLAY_SWEEP_SECONDS = 3600
    monkeypatch.setattr(spans, "make_waiting_runs", made)
    thread = spans.rounds.start_aside(lambda: spans.make_waiting_runs())
    yield made
    spans.stop()
    made.may_go_on.release(9)
    thread.join(10)
    assert not thread.is_alive()


def test_a_message_that_comes_while_runs_are_made_is_not_forgotten(rounds):
    spans.make_runs()
    wait_until(lambda: rounds.begun == 1, 5)

    spans.make_runs()
    rounds.may_go_on.release()

    wait_until(lambda: rounds.begun == 2, 5)


def test_what_goes_wrong_ends_a_round_and_not_the_thread(rounds, monkeypatch):
    failures: list[str] = []

    def fail() -> int:
        failures.append("failed")
        raise RuntimeError

    monkeypatch.setattr(spans, "make_waiting_runs", fail)
    spans.make_runs()
    wait_until(lambda: failures, 5)
    monkeypatch.setattr(spans, "make_waiting_runs", rounds)

    spans.make_runs()

    wait_until(lambda: rounds.begun == 1, 5)
