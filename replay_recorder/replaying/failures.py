"""Errors of the recorded run, raised again at their place under their own names."""

from __future__ import annotations

from replay_recorder.replaying.errors import NoAnswerRecorded
from replay_recorder.replaying.recording import Json


class RecordedFailure(Exception):
    """Raised by the recorded run at this place; the class of the exception bears the recorded name."""


def recorded_failure(error: Json | None, otherwise: str) -> Exception:
    """The recorded exception; `otherwise` says what is missing where none was recorded."""
    if not error or not (error.get("type") or error.get("message")):
        return NoAnswerRecorded(f"{otherwise[:1].upper()}{otherwise[1:]}, and the recording does not say how.")
    kind: type[RecordedFailure] = type(str(error.get("type") or "RecordedFailure"), (RecordedFailure,), {})
    return kind(str(error.get("message") or ""))
