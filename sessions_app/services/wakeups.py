"""Telling a worker that there is work. A lost message costs time and nothing else."""

from __future__ import annotations

import logging
from importlib import import_module
from threading import Lock, Timer

from celery import Celery
from django.conf import settings
from kombu import pools
from kombu.connection import Connection
from kombu.exceptions import OperationalError

from sessions_app.models import Replay
from sessions_app.models.replays import ReplayQueue

logger = logging.getLogger(__name__)
TASK = "sessions_app.run_replay"
SPANS_TASK = "sessions_app.make_runs"

_IMPATIENT = {"max_retries": 0, "socket_connect_timeout": 0.3, "socket_timeout": 0.3}
"""Somebody waits for the answer to the request that queued the replay. Celery's own connection tries
for six seconds (measured) before it says that there is no broker."""


def wake(replay: Replay) -> bool:
    """False when the broker is away; the sweeper sees the row and sends again."""
    return _send(TASK, f"replay {replay.replay_id}", queue=replay.queue, replay_id=replay.pk)


_SOON = 0.5
"""Seconds. What comes meanwhile is told by the same message."""
_timer_lock = Lock()
_timer: Timer | None = None


def wake_for_spans() -> None:
    """Runs wait to be made of spans: a worker is told soon, once for all that come until then."""
    global _timer
    with _timer_lock:
        if _timer is None:
            _timer = Timer(_SOON, _tell_of_spans)
            _timer.daemon = True
            _timer.start()


def _tell_of_spans() -> None:
    global _timer
    with _timer_lock:
        _timer = None
    _send(SPANS_TASK, "spans", queue=ReplayQueue.REPLAYS)


def _app() -> Celery:
    """The application of this installation; without it Celery's own default would look for a broker of its own."""
    app: Celery = import_module(settings.QUEUE_APP).app
    return app


def _send(task: str, what: str, *, queue: str, **arguments: int) -> bool:
    try:
        with pools.producers[_connection()].acquire(block=True, timeout=0.3) as producer:
            _app().send_task(task, kwargs=arguments, queue=str(queue), producer=producer, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("No wake-up for %s: %s", what, type(error).__name__)
        return False
    return True


def _connection() -> Connection:
    """Only names the pool: connections that are open are used again."""
    connection: Connection = _app().connection_for_write()
    connection.transport_options = {**(connection.transport_options or {}), **_IMPATIENT}
    return connection
