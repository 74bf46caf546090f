"""Recorded answers of tools, each given once: by call id, else by name and arguments in recorded order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from replay_recorder.replaying.comparing import same_value
from replay_recorder.replaying.errors import NoAnswerRecorded, RequestDiffers, in_words
from replay_recorder.replaying.notes import AnotherRequest, OnDifference
from replay_recorder.replaying.recording import RecordedCall, read_arguments

_IS_INTERRUPTED_WITHIN = 1.0
"""Seconds."""


class CallBook:
    """Safe for several threads: tools run beside each other."""

    def __init__(self, calls: Sequence[RecordedCall], on_difference: OnDifference) -> None:
        self.notes: list[AnotherRequest] = []
        """Calls whose recorded answer was given although they are not the recorded ones."""
        self._left = [call for call in calls if call.is_answered_by_tool]
        self._on_difference = on_difference
        self._lock = threading.Lock()

    def take(self, name: str, call_id: str | None, sent: Any) -> RecordedCall:
        """The answer to this call. Raises `RequestDiffers` and `NoAnswerRecorded`."""
        arguments = read_arguments(sent)
        with self._lock:
            found = self._find(name, call_id, arguments)
            if found is None:
                raise NoAnswerRecorded(self._missing(name, arguments))
            if not same_value(found.arguments, arguments):
                self._differs(found, f"arguments of {found.name}", found.arguments, arguments)
            self._left.remove(found)
        return found

    async def answer(self, name: str, call_id: str | None, sent: Any) -> RecordedCall:
        """The same; raises `NoAnswerRecorded` also for a call of which no end was recorded."""
        found = self.take(name, call_id, sent)
        if found.outcome == "interrupted" and not found.has_result:
            # Something beside it ended the run meanwhile, and will do so again.
            await asyncio.sleep(_IS_INTERRUPTED_WITHIN)
        if not (found.has_result or found.error or found.outcome in ("crashed", "deferred", "unapproved")):
            raise NoAnswerRecorded(f"Step {found.step}: what {name} answered was not recorded.")
        return found

    @property
    def left_over(self) -> list[RecordedCall]:
        """Answers and errors that nobody asked for; arguments that were refused are refused without the tool."""
        ended = [call for call in self._left if call.has_result or call.error]
        return [call for call in ended if call.retry.get("cause") != "validation_error"]

    def _find(self, name: str, call_id: str | None, arguments: Any) -> RecordedCall | None:
        """An id decides, where the recording has it; the same arguments, where it has none."""
        named = [call for call in self._left if call.name == name]
        by_id = [call for call in named if call_id is not None and call.call_id == call_id]
        equal = [call for call in by_id or named if same_value(call.arguments, arguments)]
        return next(iter(equal or by_id), None)

    def reached(self, found: RecordedCall, given: Any) -> None:
        """The call came through the checks and hooks in front of its tool. Raises `RequestDiffers`."""
        if found.given is not None and not same_value(found.given, given):
            self._differs(found, f"what {found.name} was given", found.given, given)

    def _differs(self, found: RecordedCall, what: str, recorded: Any, now: Any) -> None:
        if self._on_difference == "stop":
            raise RequestDiffers(found.step, what, recorded, now)
        self.notes.append(AnotherRequest(found.step, "arguments", recorded, now))

    def _missing(self, name: str, arguments: Any) -> str:
        asked = f"No recorded answer is left for {name} with {in_words(arguments)}."
        recorded = [call for call in self._left if call.name == name]
        near = ", ".join(f"step {call.step} with {in_words(call.arguments)}" for call in recorded[:3])
        return f"{asked} Recorded calls of it that are left: {near}." if near else asked
