"""Nothing that goes wrong in the recorder may reach the agent."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from types import TracebackType

logger = logging.getLogger("replay_recorder")


class Faults:
    """What went wrong inside the recorder, counted by place; each place is logged once."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, place: str, error: BaseException) -> None:
        with self._lock:
            self._counts[place] += 1
            is_first = self._counts[place] == 1
        if is_first:
            # Never the message: it may quote what was recorded.
            logger.warning("The recorder failed in %s (%s); the agent is not affected.", place, type(error).__name__)

    @property
    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)


FAULTS = Faults()


class guard:
    """`with guard("place"):` swallows every `Exception` of the block and counts it.

    What the agent must be able to do to itself, `KeyboardInterrupt` and cancellation, passes.
    """

    __slots__ = ("_place",)

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        FAULTS.note(self._place, error)
        return True
