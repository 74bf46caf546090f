"""Every worker goes through what was asked for all sessions of a query; in a thread of its own, so that replays do not
wait for it."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_init, worker_shutdown

from sessions_app.services import bulk_jobs
from sessions_app.tasks.rounds import Rounds

rounds = Rounds("work on all sessions of a query")


@worker_init.connect
def start(**_: Any) -> None:
    rounds.start_aside(bulk_jobs.go_on)


@worker_shutdown.connect
def stop(**_: Any) -> None:
    rounds.stop()
