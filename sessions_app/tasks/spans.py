"""A thread in every worker that makes the runs of spans which nobody waited for.

Not a task of its own: it would take the place of a replay for as long as spans keep coming, and a message that comes
while it is at work would find it busy and be forgotten.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_shutdown
from django.conf import settings
from django.db import close_old_connections

from sessions_app.services.trace_runs import make_waiting_runs
from sessions_app.services.wakeups import SPANS_TASK

logger = logging.getLogger(__name__)
_asked = threading.Event()
_stopping = threading.Event()


@shared_task(name=SPANS_TASK)
def make_runs() -> None:
    """Spans have come. A thread that is at work looks again when it is through."""
    _asked.set()


def make_runs_until_stopped() -> None:
    """When asked, and every few seconds: messages get lost, and runs that nobody ends have to be ended."""
    while not _stopping.is_set():
        _asked.wait(settings.REPLAY_SWEEP_SECONDS)
        _asked.clear()
        try:
            while not _stopping.is_set() and make_waiting_runs():
                pass  # more may have come meanwhile
        except Exception as error:  # whatever it is, the next round must come
            logger.warning("Runs could not be made of spans: %s", type(error).__name__)
        finally:
            close_old_connections()


@worker_init.connect
def start(**_: Any) -> None:
    _stopping.clear()
    threading.Thread(target=make_runs_until_stopped, name="maker of runs", daemon=True).start()


@worker_shutdown.connect
def stop(**_: Any) -> None:
    _stopping.set()
    _asked.set()
