"""Every worker goes through what was asked for all sessions of a query; in a thread of its own, so that replays do not
wait for it."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_init, worker_shutdown

from sessions_app.services import bulk_jobs
from sessions_app.tasks.rounds import Rounds
from sessions_app.tasks.spans import give_way

rounds = Rounds("work on all sessions of a query")


def go_on_to_the_end() -> None:
    while not rounds.is_over and bulk_jobs.go_on():
        pass


@worker_init.connect
def start(**_: Any) -> None:
    rounds.start(go_on_to_the_end, at_start=give_way)


@worker_shutdown.connect
def stop(**_: Any) -> None:
    rounds.stop()
