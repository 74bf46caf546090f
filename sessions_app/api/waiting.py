"""Answers that wait until something has ended.

A request that waits holds a thread of its web process and nothing else: between two looks its connection is back in the
pool. As few wait at once in one process as it has threads to spare; others are told to come back.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import BoundedSemaphore
from time import monotonic, sleep
from typing import Annotated

from django.conf import settings
from django.db import connection
from pydantic import Field

from sessions_app.api.errors import Refused

WaitSeconds = Annotated[float, Field(ge=0, le=60)]
_LOOKS_EVERY = 0.25
_ROOM = BoundedSemaphore(settings.API_MAX_WAITING_REQUESTS)


def wait_for_end(has_ended: Callable[[], bool], seconds: float) -> None:
    """Return once it has ended, or after so many seconds. Raises `Refused` where as many wait as may."""
    if seconds <= 0 or has_ended():
        return
    if not _ROOM.acquire(blocking=False):
        words = "As many requests wait as this server lets; send it again in a moment, or without `wait`."
        raise Refused(429, "too_many_waiting", words, "wait")
    try:
        _look_until(has_ended, monotonic() + seconds)
    finally:
        _ROOM.release()


def _look_until(has_ended: Callable[[], bool], until: float) -> None:
    while (left := until - monotonic()) > 0:
        _give_connection_back()
        sleep(min(left, _LOOKS_EVERY))
        if has_ended():
            return


def _give_connection_back() -> None:
    """Others need it meanwhile; the next query takes one."""
    if not connection.in_atomic_block:
        connection.close()
