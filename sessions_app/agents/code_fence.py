"""The world off for the team's own code, which may write to a folder of its own.

Tools that were allowed to run live reach the world while they run, and nothing else does. The fence keeps accidents
from the world, not malice.
"""

from __future__ import annotations

import _posixsubprocess
import asyncio
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessions_app.agents.world_off import (
    DISK,
    NETWORK,
    PROGRAMS,
    WRITING,
    Fence,
    WorldIsOff,
    leave_network,
    start_nothing,
)

_FILE_BYTES = 64 * 1024**2
_OPEN_FILES = 256


@dataclass
class _Window:
    is_open: bool = True


_window: ContextVar[_Window] = ContextVar("live_window")


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeLimits:
    """How much the team's code may use in one replay."""

    memory_mb: int = 1024
    seconds: int = 60
    output_mb: int = 16


@contextmanager
def live_window() -> Iterator[None]:
    """A live tool runs in here, and what it starts, as long as it runs itself."""
    window = _Window()
    token = _window.set(window)
    try:
        yield
    finally:
        window.is_open = False
        _window.reset(token)


def fence_code(limits: CodeLimits, folder: Path, *, is_live: bool) -> Fence:
    """Call it before the team's code is imported; there is no way back."""
    fence = Fence(has_own_network=False if is_live else leave_network())
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    sys.dont_write_bytecode = True
    _limit(limits)
    _posixsubprocess.fork_exec = start_nothing
    if is_live:
        asyncio.BaseEventLoop.run_in_executor = _in_context(asyncio.BaseEventLoop.run_in_executor)  # type: ignore[method-assign]
    home = os.path.realpath(folder)
    sys.addaudithook(lambda event, arguments: _audit(fence, home, event, arguments))
    return fence


def _in_context(original: Callable[..., Any]) -> Any:
    """The loop looks names up in threads, which otherwise would not know whose window is open."""

    def run_in_executor(loop: Any, executor: Any, work: Callable[..., Any], *arguments: Any) -> Any:
        return original(loop, executor, copy_context().run, work, *arguments)

    return run_in_executor


def _limit(limits: CodeLimits) -> None:
    used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
    ends = used + limits.seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (ends, ends + 5))  # first a signal that says what it is for
    for what, value in (
        (resource.RLIMIT_AS, limits.memory_mb * 1024**2),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
    ):
        resource.setrlimit(what, (value, value))


def _audit(fence: Fence, home: str, event: str, arguments: tuple[object, ...]) -> None:
    if event not in _WATCHED:
        return
    if event in NETWORK and (window := _window.get(None)) is not None and window.is_open:
        return
    if event in _ON_DISK and _stays_home(event, arguments, home):
        return
    fence.attempts.append(event)
    raise WorldIsOff(f"The world is off in a replay: {event}.")


_ON_DISK = DISK | {"open"}
_WATCHED = NETWORK | PROGRAMS | _ON_DISK
_TWO_PATHS = frozenset({"os.rename", "os.link"})


def _stays_home(event: str, arguments: tuple[object, ...], home: str) -> bool:
    """Reading is free everywhere: modules are loaded lazily. Writing is free in the folder."""
    if event == "open":
        flags = arguments[2] if len(arguments) > 2 else 0
        if not isinstance(flags, int) or not flags & WRITING or isinstance(arguments[0], int):
            return True
    if event == "os.symlink":
        return False
    paths = arguments[:2] if event in _TWO_PATHS else arguments[:1]
    return all(_is_in(path, home) for path in paths)


def _is_in(path: object, home: str) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    name = os.fsdecode(path)
    return name in (os.devnull, ":memory:") or os.path.realpath(name).startswith(home + os.sep)
