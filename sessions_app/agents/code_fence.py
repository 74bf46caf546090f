"""The world off for the team's own code, which may write to a folder of its own.

Tools that were allowed to run live reach the world while they run, and nothing else does. The fence keeps accidents
from the world, not malice.
"""

from __future__ import annotations

import _posixsubprocess
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from sessions_app.agents.world_off import (
    _DISK,
    _NETWORK,
    _PROGRAMS,
    _WRITING,
    Fence,
    WorldIsOff,
    _leave_network,
    _start_nothing,
)

_FILE_BYTES = 64 * 1024**2
_OPEN_FILES = 256
_window: ContextVar[bool] = ContextVar("live_window", default=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeLimits:
    """How much the team's code may use in one replay."""

    memory_mb: int = 1024
    seconds: int = 60
    output_mb: int = 16


@dataclass
class CodeFence(Fence):
    """`live_events` counts what live tools did in the world; `attempts` what was refused."""

    live_events: list[str] = field(default_factory=list)


@contextmanager
def live_window() -> Iterator[None]:
    """A live tool runs in here. Threads that it starts through the loop have the window too."""
    token = _window.set(True)
    try:
        yield
    finally:
        _window.reset(token)


def fence_code(limits: CodeLimits, folder: Path, *, is_live: bool) -> CodeFence:
    """Call it before the team's code is imported; there is no way back."""
    fence = CodeFence(has_own_network=False if is_live else _leave_network())
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    sys.dont_write_bytecode = True
    _limit(limits)
    _posixsubprocess.fork_exec = _start_nothing
    home = os.path.realpath(folder)
    sys.addaudithook(lambda event, arguments: _audit(fence, home, event, arguments))
    return fence


def _limit(limits: CodeLimits) -> None:
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    seconds = int(used) + limits.seconds + 1
    for what, value in (
        (resource.RLIMIT_AS, limits.memory_mb * 1024**2),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
    ):
        resource.setrlimit(what, (value, value))


def _audit(fence: CodeFence, home: str, event: str, arguments: tuple[object, ...]) -> None:
    if event not in _WATCHED:
        return
    if event in _NETWORK and _window.get():
        fence.live_events.append(event)
        return
    if event in _ON_DISK and _stays_home(event, arguments, home):
        return
    fence.attempts.append(event)
    raise WorldIsOff(f"The world is off in a replay: {event}.")


_ON_DISK = _DISK | {"open"}
_WATCHED = _NETWORK | _PROGRAMS | _ON_DISK
_TWO_PATHS = frozenset({"os.rename", "os.link"})


def _stays_home(event: str, arguments: tuple[object, ...], home: str) -> bool:
    """Reading is free everywhere: modules are loaded lazily. Writing is free in the folder."""
    if event == "open":
        flags = arguments[2] if len(arguments) > 2 else 0
        if not isinstance(flags, int) or not flags & _WRITING or isinstance(arguments[0], int):
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
