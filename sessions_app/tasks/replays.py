"""The task that a wake-up names, and what a worker needs around it."""

from __future__ import annotations

import os
import socket

from celery import shared_task

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.services import replay_work
from sessions_app.services.wakeups import TASK

children = ChildPool()
"""One pool a worker process; its children end with it."""


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@shared_task(name=TASK)
def run_replay(*, replay_id: int) -> None:
    """Running it twice does no harm: only one claim succeeds."""
    replay_work.work_on(replay_id, worker=worker_name(), children=children)
