"""Tools that run beside each other, where the error of one ended the run: they end in the order of then.

Which of them ends first is chance, and whoever is late is interrupted by the error. The server does the same in replays
of its own.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from replay_recorder.replaying.recording import Recording

_IS_INTERRUPTED_WITHIN = 1.0
"""Seconds. Nothing waits for longer: today's code may end otherwise."""
_LOOKS_EVERY = 0.005
"""Seconds."""
_TURNS_OF_SIBLINGS = 50
"""Turns of the event loop, of which an answer needs a few."""


class Turns:
    """Of the calls beside the one whose error ended the run; empty for any other run."""

    def __init__(self, recording: Recording) -> None:
        heard = _heard_at_the_end(recording)
        last = recording.answers[-1].step if recording.answers else 0
        beside = [call for call in recording.calls if heard is not None and call.step > last]
        self._outcomes = {call.call_id: call.outcome for call in beside if call.call_id not in (heard or ())}
        self._awaited = {call.call_id for call in beside if call.call_id in (heard or ()) and call.has_result}

    async def before_error(self, call_id: str | None) -> None:
        """Answers that were heard then come first."""
        if self._outcomes.get(call_id) != "crashed":
            return
        end = time.monotonic() + _IS_INTERRUPTED_WITHIN
        while self._awaited and time.monotonic() < end:
            await asyncio.sleep(_LOOKS_EVERY)
        for _ in range(_TURNS_OF_SIBLINGS):
            await asyncio.sleep(0)

    async def before_answer(self, call_id: str | None) -> None:
        if self._outcomes.get(call_id) == "interrupted":
            await asyncio.sleep(_IS_INTERRUPTED_WITHIN)

    async def behind_answer(self, call_id: str | None) -> None:
        """One that came too late to be heard comes too late again."""
        self._awaited.discard(call_id)
        if self._outcomes.get(call_id) == "success":
            await asyncio.sleep(_IS_INTERRUPTED_WITHIN)


def _heard_at_the_end(recording: Recording) -> set[Any] | None:
    """Ids of the calls that the last messages answer; None for a run that ended without an error."""
    final = recording.record.get("final")
    if recording.record.get("error") is None or final is None:
        return None
    newest = (final.get("messages") or [{}])[-1]
    parts = newest.get("parts") or [] if newest.get("kind") == "request" else []
    return {part.get("tool_call_id") for part in parts}
