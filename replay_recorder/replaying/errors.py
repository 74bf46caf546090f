"""What ends a replay on this machine before its end. Each says where, what was recorded and what is there now."""

from __future__ import annotations

import json
from typing import Any, TypeGuard

from replay_recorder.tools.tool_files import RecordingError

_SHOWN = 300


class ReplayStopped(RecordingError):
    """The replay cannot go on as it was recorded; nothing is made up."""


class RequestDiffers(ReplayStopped):
    """The request is not the recorded one, so what the model would have answered is not known."""

    def __init__(self, step: int, path: str, recorded: Any, now: Any) -> None:
        super().__init__(
            f"Step {step}: {path} differs. Recorded: {in_words(recorded)}. Now: {in_words(now)}. "
            'To be given the recorded answer all the same, say on_difference="play_on".'
        )
        self.step = step
        self.path = path
        self.recorded = recorded
        self.now = now


class NoAnswerRecorded(ReplayStopped):
    """The recording holds no answer to what was asked for."""


class ReplayEnded(BaseException):
    """The replay ends here, whatever the agent's code would make of an exception."""


class RequestNotRecorded(ReplayEnded):
    """A tool that runs sent a request for which nothing was recorded."""


class ModelNotRecorded(ReplayEnded):
    """The agent's code asked a model of its own, whose answers are not in this recording."""


class ReplayPaused(ReplayEnded):
    """Whoever watches the replay wants it to wait here."""


def is_difference(found: dict[str, Any] | None, verdict: str | None) -> TypeGuard[dict[str, Any]]:
    """Whether both sides can be shown; where a recording ends there is nothing to hold against each other."""
    if not found or not found.get("path"):
        return False
    return verdict != "unknown_from_step" or any(found.get(side) is not None for side in ("recorded", "replayed"))


def in_words(value: Any) -> str:
    """JSON of it, cut."""
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
