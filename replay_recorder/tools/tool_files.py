"""Recordings of tool calls in a file of their own: written in production, played back in a test.

    [{"tool_name": "lookup_order", "args": {"id": "ORD-5521"}, "result": "shipped"}, ...]

A call that failed has `error` beside a null result, one with an id has `call_id`, and one whose answer could not be
written down has `"captured": false`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from replay_recorder.fork_lock import ForkLock
from replay_recorder.tools.whole_file import write_whole
from replay_recorder.writing.json_text import jsonable

Recording = dict[str, Any]
_LONGEST_NAME = 200


class RecordingError(Exception):
    """A test asked for something that the recording does not hold."""


class ReplayMismatch(RecordingError):
    """The call that was asked for is not the one that was recorded here."""

    def __init__(self, position: int, recorded: Recording, asked: Recording) -> None:
        """`position` counts from 1."""
        super().__init__(
            f"Call {position} was recorded as {_in_words(recorded)}, and {_in_words(asked)} was asked for."
        )
        self.position = position
        self.recorded = recorded
        self.asked = asked


class RecordingExhausted(RecordingError):
    """Every recorded call has been replayed already, or none has the id that was asked for."""


class RecordedToolError(Exception):
    """The tool failed when it was recorded, and so it does now; `type` and `message` are those of its exception."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error.get('type')}: {error.get('message')}")
        self.type = error.get("type")
        self.message = error.get("message")


class ToolRecorder:
    """Collects tool calls of one run."""

    def __init__(self) -> None:
        self.recordings: list[Recording] = []

    def record(
        self,
        tool_name: str,
        args: Any,
        result: Any,
        *,
        error: Mapping[str, Any] | None = None,
        call_id: str | None = None,
        captured: bool = True,
    ) -> None:
        """A call, in the order in which they ended; `error` has `type` and `message`.

        Arguments and answer are kept as they are now, in JSON: a tuple becomes a list, an unknown object its text.
        """
        said = {"tool_name": tool_name, "args": jsonable(args), "result": jsonable(result)}
        more = {"error": error and dict(error), "call_id": call_id, "captured": None if captured else False}
        self.recordings.append({**said, **{key: value for key, value in more.items() if value is not None}})

    def save(self, run_id: str, folder: str | os.PathLike[str] = "recordings") -> Path:
        """Write `<folder>/<run_id>.json`, whole or not at all; signs that files cannot have are written as `%2F`.

        Raises `ValueError` for an empty or very long id, and `OSError` when it cannot be written.
        """
        path = _path(run_id, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(self.recordings, allow_nan=False))
        return path


class ToolReplayer:
    """Answers tool calls from a recording, in the recorded order, and checks that they are the recorded ones."""

    def __init__(self, run_id: str, folder: str | os.PathLike[str] = "recordings") -> None:
        """The file is one of `ToolRecorder`, or a native record, as exported goldens have them.

        Raises `ValueError` when the file holds no recording, and `OSError` when it cannot be read.
        """
        self._path = _path(run_id, folder)
        self.recordings = _recordings_in(self._path)
        self._left = dict(enumerate(self.recordings, start=1))
        self._lock = ForkLock()

    def replay(self, tool_name: str, args: Any, call_id: str | None = None) -> Any:
        """The recorded answer. `1`, `1.0` and `True` are three different arguments.

        With a `call_id` that was recorded the order does not matter, as parallel calls have none. Raises
        `ReplayMismatch`, `RecordingExhausted`, and `RecordedToolError` where the tool failed.
        """
        asked = {"tool_name": tool_name, "args": jsonable(args), **({"call_id": call_id} if call_id else {})}
        with self._lock:
            position = self._position(asked)
            recorded = self._left[position]
            if _key(recorded) != _key(asked):
                raise ReplayMismatch(position, recorded, asked)
            del self._left[position]
        return _answer(recorded)

    def left_over(self) -> list[Recording]:
        """Recorded calls that nobody has asked for."""
        with self._lock:
            return list(self._left.values())

    def _position(self, asked: Recording) -> int:
        call_id = asked.get("call_id")
        has_ids = call_id is not None and any("call_id" in recorded for recorded in self.recordings)
        for position, recorded in self._left.items():
            if not has_ids or recorded.get("call_id") == call_id:
                return position
        raise RecordingExhausted(self._exhausted_in_words(asked, has_ids))

    def _exhausted_in_words(self, asked: Recording, has_ids: bool) -> str:
        of_id = f" with the id {asked['call_id']!r}" if has_ids else ""
        return (
            f"{self._path} holds {len(self.recordings)} calls and none{of_id} is left to answer {_in_words(asked)}. "
            "The code under test calls more tools than were recorded, or calls them again."
        )


def _recordings_in(path: Path) -> list[Recording]:
    found = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(found, dict) and "steps" in found:
        return _calls_of(found)
    if not isinstance(found, list) or not all(isinstance(each, dict) and "tool_name" in each for each in found):
        raise ValueError(f"{path} holds no recording: a list of objects with tool_name, args and result.")
    return found


def _calls_of(record: Recording) -> list[Recording]:
    """The calls of a native record: exported goldens have the whole run."""
    from replay_recorder.replaying.recording import read_recording  # no part of recording

    recorder = ToolRecorder()
    for call in read_recording(record).calls:
        if call.is_answered_by_tool:
            is_known = call.has_result or call.error is not None
            told = (call.name, call.arguments, call.result)
            recorder.record(*told, error=call.error, call_id=call.call_id, captured=is_known)
    return recorder.recordings


def _answer(recorded: Recording) -> Any:
    if recorded.get("error") is not None:
        raise RecordedToolError(recorded["error"])
    if recorded.get("captured") is False:
        raise RecordingError(f"The answer of {_in_words(recorded)} could not be written down when it was recorded.")
    # A copy: what is done to an answer must not be seen in `recordings`.
    return jsonable(recorded.get("result"))


def _path(run_id: str, folder: str | os.PathLike[str]) -> Path:
    name = quote(run_id, safe=" ")
    if not run_id or len(name) > _LONGEST_NAME:
        raise ValueError(f"A run id has 1 to {_LONGEST_NAME} characters as a file name, and {run_id[:80]!r} has not.")
    return Path(folder) / f"{name}.json"


def _key(call: Recording) -> tuple[Any, str]:
    return call["tool_name"], _canonical(call.get("args"))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _in_words(call: Recording) -> str:
    text = f"{call['tool_name']}({_canonical(call.get('args'))})"
    return text if len(text) <= 1000 else text[:1000] + "…"
