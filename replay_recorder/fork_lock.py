"""A lock that a forked child can always take: a thread that held it in the parent is not there to let go of it."""

from __future__ import annotations

import os
import threading


class ForkLock:
    """As `threading.RLock` in a `with` statement, new in each process."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            # Only one thread survives a fork, so nobody races for this.
            self._process, self._lock = os.getpid(), threading.RLock()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
