"""A thread in every worker that finds what wake-ups missed: the broker may vanish, workers may die."""

from __future__ import annotations

import logging
import threading
from typing import Any

from celery.signals import worker_ready, worker_shutdown
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from sessions_app.services import leases, replay_work
from sessions_app.services.wakeups import wake
from sessions_app.tasks.replays import children, worker_name

logger = logging.getLogger(__name__)
_stopping = threading.Event()


def sweep() -> None:
    """Take back what dead workers held and announce what nobody took up.

    While the broker is away the replays run here, one after the other: slower, but they do run.
    """
    leases.take_back_expired()
    for replay in leases.unheard():
        if not wake(replay):
            replay_work.work_on(replay.pk, worker=worker_name(), children=children)


def _sweep_until_stopped() -> None:
    while not _stopping.wait(settings.REPLAY_SWEEP_SECONDS):
        try:
            sweep()
        except DatabaseError as error:
            logger.warning("The sweeper could not reach the database: %s", type(error).__name__)
        finally:
            close_old_connections()


@worker_ready.connect
def start(**_: Any) -> None:
    _stopping.clear()
    children.warm_up()
    threading.Thread(target=_sweep_until_stopped, name="sweeper", daemon=True).start()


@worker_shutdown.connect
def stop(**_: Any) -> None:
    _stopping.set()
    children.close()
