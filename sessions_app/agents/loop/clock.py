"""The clock is a fixture: a replay sees the time of the recording."""

from __future__ import annotations

from datetime import UTC, datetime

import time_machine

from sessions_app.core.formats.json_writer import iso


class PinnedClock:
    """Stands still at a recorded moment and is moved on from step to step."""

    def __init__(self, start: datetime | None) -> None:
        self.pinned_at = start
        self._travel = time_machine.travel(start, tick=False) if start else None
        self._traveller = self._travel.start() if self._travel else None

    @property
    def told(self) -> str | None:
        """At which time it stood; None where the clock went on as it does outside."""
        return iso(self.pinned_at) if self.pinned_at else None

    @property
    def now(self) -> datetime | None:
        """None where the clock goes on as it does outside."""
        return None if self._traveller is None else datetime.now(UTC)

    def move_to(self, moment: datetime | None) -> None:
        if self._traveller is not None and moment is not None:
            self._traveller.move_to(moment)

    def release(self) -> None:
        if self._travel is not None:
            self._travel.stop()
