"""Work that a worker does again and again, in a thread beside its tasks."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from django.conf import settings
from django.db import close_old_connections

logger = logging.getLogger(__name__)
_NICE = 10


class Rounds:
    """Every `REPLAY_SWEEP_SECONDS`, and at once when asked: messages get lost, so nothing waits for one alone."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked = threading.Event()
        self._is_over = threading.Event()

    @property
    def is_over(self) -> bool:
        return self._is_over.is_set()

    def start(
        self,
        work: Callable[[], object],
        *,
        at_start: Callable[[], object] = lambda: None,
        at_end: Callable[[], object] = lambda: None,
    ) -> threading.Thread:
        """In a thread that ends with the process at the latest."""
        self._is_over.clear()
        self._asked.clear()
        thread = threading.Thread(target=self._go_round, args=(work, at_start, at_end), name=self._name, daemon=True)
        thread.start()
        return thread

    def start_aside(self, go_on: Callable[[], object]) -> threading.Thread:
        """A round goes on for as long as there is something to do, in a thread that gives way: whoever sends spans or
        looks at a page waits, and nobody waits for this thread."""
        return self.start(lambda: self._to_the_end(go_on), at_start=_give_way)

    def _to_the_end(self, go_on: Callable[[], object]) -> None:
        while not self.is_over and go_on():
            pass

    def ask(self) -> None:
        """Asked while it is at work, it works once more when it is through."""
        self._asked.set()

    def stop(self) -> None:
        """No round begins any more."""
        self._is_over.set()
        self._asked.set()

    def _go_round(
        self, work: Callable[[], object], at_start: Callable[[], object], at_end: Callable[[], object]
    ) -> None:
        at_start()
        while not self._is_over.is_set():
            self._asked.wait(settings.REPLAY_SWEEP_SECONDS)
            self._asked.clear()
            if not self._is_over.is_set():
                self._work(work)
        at_end()

    def _work(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # whatever it is, the next round must come
            logger.warning("The %s had to stop halfway: %s", self._name, type(error).__name__)
        finally:
            close_old_connections()


def _give_way() -> None:
    with suppress(OSError):  # only Linux knows threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
