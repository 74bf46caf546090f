"""Every worker applies rules of redaction to what is stored, where somebody started that; in a thread of its own, so
that replays do not wait for it."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_init, worker_shutdown

from sessions_app.services import redaction_jobs
from sessions_app.tasks.rounds import Rounds
from sessions_app.tasks.spans import give_way

rounds = Rounds("redaction of what is stored")


def go_on_to_the_end() -> None:
    while not rounds.is_over and redaction_jobs.go_on():
        pass


@worker_init.connect
def start(**_: Any) -> None:
    rounds.start(go_on_to_the_end, at_start=give_way)


@worker_shutdown.connect
def stop(**_: Any) -> None:
    rounds.stop()
