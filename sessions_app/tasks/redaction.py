"""Every worker applies rules of redaction to what is stored, where somebody started that; in a thread of its own, so
that replays do not wait for it."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_init, worker_shutdown

from sessions_app.services import redaction_jobs
from sessions_app.tasks.rounds import Rounds

rounds = Rounds("redaction of what is stored")


@worker_init.connect
def start(**_: Any) -> None:
    rounds.start_aside(redaction_jobs.go_on)


@worker_shutdown.connect
def stop(**_: Any) -> None:
    rounds.stop()
