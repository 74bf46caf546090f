"""Which pieces many traces have, such as instructions and tool definitions."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock


class CommonPieces:
    """Remembers the first trace of each of the pieces seen last, so many of them; for several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._first: OrderedDict[str, str] = OrderedDict()

    def is_common(self, digest: str, trace_id: str) -> bool:
        """Whether it came in another trace before."""
        with self._lock:
            first = self._first.setdefault(digest, trace_id)
            self._first.move_to_end(digest)
            if len(self._first) > self._most:
                self._first.popitem(last=False)
            return first != trace_id
