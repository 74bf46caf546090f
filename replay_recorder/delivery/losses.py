"""What could not be kept: counted, logged once for each reason, and one line each in a file."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from replay_recorder.guard import logger

_MAX_LOG_BYTES = 1024 * 1024


class Losses:
    """How many runs this process could not keep, or not whole, by reason."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, run: str, reason: str) -> None:
        """`run` is the name of its file."""
        with self._lock:
            self._counts[reason] += 1
            is_first = self._counts[reason] == 1
        if is_first:
            logger.warning("A run was not recorded whole: %s. Further ones are counted and not logged.", reason)
        # Where even this line cannot be written, the count is what is left.
        with contextlib.suppress(OSError):
            self._append(f"{datetime.now(timezone.utc).isoformat()} {run} {reason}\n")

    def _append(self, line: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            if log.tell() < _MAX_LOG_BYTES:
                log.write(line)

    @property
    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)

    def after_fork(self) -> None:
        """The child begins anew; the lock may have been held by a thread that it does not have."""
        self._counts = Counter()
        self._lock = threading.Lock()
