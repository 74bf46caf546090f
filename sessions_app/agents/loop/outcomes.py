"""How a replay leaves the loop before its end. They derive from BaseException where the loop would
otherwise turn them into an answer for the model."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from traceback import walk_tb

from pydantic_ai.exceptions import ToolRetryError

from sessions_app.core.fork.stops import Stopped
from sessions_app.core.replay.fixture_book import FixtureMiss
from sessions_app.core.run import ErrorInfo

_PACKAGE = Path(__file__).parents[2]
_OF_PRODUCT = (str(_PACKAGE / "agents" / "loop"), str(_PACKAGE / "core"))
_STDLIB = sysconfig.get_path("stdlib")


class RanPastRecording(BaseException):
    """The loop asked for a model answer that the recording does not hold."""

    def __init__(self, cursor: int) -> None:
        super().__init__(f"No recorded answer for model request {cursor + 1}.")
        self.cursor = cursor


class FixtureNotFound(BaseException):
    """The loop called a tool for which no recorded answer fits."""

    def __init__(self, miss: FixtureMiss) -> None:
        super().__init__(f"No recorded answer for {miss.tool_name!r} with these arguments.")
        self.miss = miss


class Paused(BaseException):
    """The replay waits at a stop: for somebody to go on, or for an answer that nothing knows."""

    def __init__(self, stopped: Stopped) -> None:
        super().__init__(f"Stopped before {stopped.stop.name}.")
        self.stopped = stopped


class RecordedError(Exception):
    """An exception of the recorded run, raised again at its place."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(": ".join(part for part in (error.type, error.message) if part) or "recorded error")
        self.error = error


def is_fault_of_product(error: BaseException) -> bool:
    """Whether what stands around the loop raised it, itself or in the standard library: the loop did not come to it.
    The refusal of an output is one that the loop hears; a stream lets it through."""
    if isinstance(error, ToolRetryError):
        return False
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    own = [file for file in files if not file.startswith("<") and not _is_of_stdlib(file)]
    return bool(own) and own[-1].startswith(_OF_PRODUCT)


def _is_of_stdlib(file: str) -> bool:
    return file.startswith(_STDLIB) and "site-packages" not in file
