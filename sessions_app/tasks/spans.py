"""Every worker makes the runs of spans which nobody waited for.

In a thread and not as a task: it would take the place of a replay for as long as spans keep coming, and a message that
comes while it is at work would find it busy and be forgotten.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_shutdown

from sessions_app.services.trace_runs import make_waiting_runs
from sessions_app.services.wakeups import SPANS_TASK
from sessions_app.tasks.rounds import Rounds

rounds = Rounds("maker of runs")
_NICE = 10
"""Whoever sends spans or looks at a page waits; nobody waits for this thread."""


@shared_task(name=SPANS_TASK)
def make_runs() -> None:
    """Spans have come."""
    rounds.ask()


def make_all() -> None:
    """More may have come meanwhile."""
    while not rounds.is_over and make_waiting_runs():
        pass


def give_way() -> None:
    with suppress(OSError):  # only Linux knows threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


@worker_init.connect
def start(**_: Any) -> None:
    rounds.start(make_all, at_start=give_way)


@worker_shutdown.connect
def stop(**_: Any) -> None:
    rounds.stop()
