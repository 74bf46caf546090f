"""Nothing that goes wrong in the recorder may reach the agent."""

from __future__ import annotations

import logging
from collections import Counter
from types import TracebackType

logger = logging.getLogger("replay_recorder")


class Faults:
    """What went wrong inside the recorder, counted by place; each place is logged once."""

    def __init__(self) -> None:
        # Without a lock: a fork may happen while a thread holds it, and the child would wait for ever.
        self._counts: Counter[str] = Counter()

    def note(self, place: str, error: BaseException) -> None:
        self._counts[place] += 1
        if self._counts[place] == 1:
            # Never the message: it may quote what was recorded.
            logger.warning("The recorder failed in %s (%s); the agent is not affected.", place, type(error).__name__)

    def forget(self) -> None:
        """A recorder that begins counts its own."""
        self._counts.clear()

    @property
    def counts(self) -> dict[str, int]:
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        FAULTS.note(self._place, error)
        return True
