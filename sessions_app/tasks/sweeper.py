"""A thread in every worker that finds what wake-ups missed: the broker may vanish, workers may die."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from celery.signals import worker_init, worker_ready, worker_shutdown
from django.conf import settings
from django.db import close_old_connections

from sessions_app.services import leases, replay_work
from sessions_app.services.contents import sweep_contents
from sessions_app.services.sign_ins import SessionStore
from sessions_app.services.wakeups import wake
from sessions_app.tasks.replays import children, worker_name
from sessions_app.tasks.rounds import Rounds

logger = logging.getLogger(__name__)
rounds = Rounds("sweeper")


class StandIn:
    """Does the work of the worker's own threads while no broker brings it any."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="stand-in")
        self._known: set[int] = set()

    def take(self, replay_id: int) -> None:
        """Announced again and again, it waits here once."""
        if replay_id not in self._known:
            self._known.add(replay_id)
            self._threads.submit(self._work_on, replay_id)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _work_on(self, replay_id: int) -> None:
        try:
            replay_work.work_on(replay_id, worker=worker_name(), children=children)
        except Exception as error:  # the lease brings it back
            logger.warning("Replay %s could not be worked on: %s", replay_id, type(error).__name__)
        finally:
            self._known.discard(replay_id)
            close_old_connections()


def sweep(stand_in: StandIn) -> None:
    """Take back what dead workers held, announce what nobody took up, delete what nothing needs."""
    leases.take_back_expired()
    for replay in leases.unheard():
        if not wake(replay) and replay.queue in settings.WORKER_QUEUES:
            stand_in.take(replay.pk)
    sweep_contents()
    SessionStore.clear_expired()


@worker_init.connect
def start(**_: Any) -> None:
    """Before the worker looks for the broker, which may not be there for hours."""
    stand_in = StandIn(settings.WORKER_THREADS)
    rounds.start(partial(sweep, stand_in), at_end=stand_in.close)


@worker_ready.connect
def warm_up(**_: Any) -> None:
    children.warm_up()


@worker_shutdown.connect
def stop(**_: Any) -> None:
    rounds.stop()
    children.close()
