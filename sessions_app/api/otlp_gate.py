"""Admission to the OTLP doors: what would be too much at once is turned away before its body is read."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic

from django.conf import settings
from django.http import HttpRequest

from sessions_app.api.errors import Refused

logger = logging.getLogger(__name__)
_INFLATED = 10
"""What packed bytes are counted as; traces shrink about so much."""


class Gate:
    """Counts the requests that are inside this process, and their bytes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests = 0
        self._bytes = 0
        self._turned_away = 0
        self._came: deque[float] = deque(maxlen=settings.OTLP_BUSY_REQUESTS_PER_SECOND)

    @contextmanager
    def enter(self, size: int) -> Iterator[None]:
        """For as long as a request of this many bytes is served; raises `Refused` when there is no room for it."""
        with self._lock:
            self._admit(size)
        try:
            yield
        finally:
            with self._lock:
                self._requests -= 1
                self._bytes -= size

    def is_busy(self) -> bool:
        """Whether more than one request is inside, or many came within the last second: pages want the process too."""
        return self._requests > 1 or (len(self._came) == self._came.maxlen and monotonic() - self._came[0] < 1)

    def _admit(self, size: int) -> None:
        if not self._has_room(size):
            self._turned_away += 1
            raise Refused(503, "overloaded", "Too much arrives at once; send it again a little later.")
        if self._turned_away:
            logger.warning("Too much arrived at once: %d OTLP requests were told to come back.", self._turned_away)
        self._turned_away = 0
        self._came.append(monotonic())
        self._requests += 1
        self._bytes += size

    def _has_room(self, size: int) -> bool:
        """A large request that is alone always has."""
        if self._requests >= settings.OTLP_MAX_REQUESTS_IN_FLIGHT:
            return False
        return not self._bytes or self._bytes + size <= settings.OTLP_MAX_BYTES_IN_FLIGHT


GATE = Gate()


def expected_size(request: HttpRequest) -> int:
    """Bytes that the inflated body will take; without a length, the most that a packed body may have."""
    length = request.headers.get("Content-Length", "")
    announced = int(length) if length.isdecimal() else settings.REPLAY_MAX_BODY_BYTES
    packed = request.headers.get("Content-Encoding", "identity").strip().lower() not in ("identity", "")
    return int(min(announced * (_INFLATED if packed else 1), settings.REPLAY_MAX_INFLATED_BYTES))
