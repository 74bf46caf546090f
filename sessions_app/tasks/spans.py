"""Every worker makes the runs of spans which nobody waited for.

In a thread and not as a task: it would take the place of a replay for as long as spans keep coming, and a message that
comes while it is at work would find it busy and be forgotten.
"""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_shutdown

from sessions_app.services.trace_runs import make_waiting_runs
from sessions_app.services.wakeups import SPANS_TASK
from sessions_app.tasks.rounds import Rounds

rounds = Rounds("maker of runs")


@shared_task(name=SPANS_TASK)
def make_runs() -> None:
    """Spans have come."""
    rounds.ask()


@worker_init.connect
def start(**_: Any) -> None:
    rounds.start_aside(make_waiting_runs)


@worker_shutdown.connect
def stop(**_: Any) -> None:
    rounds.stop()
