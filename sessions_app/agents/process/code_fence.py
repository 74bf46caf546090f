"""The world off for the team's own code, which may write to a folder of its own.

Live tools have a process of their own: in it there is a network, and everything else is as closed.
"""

from __future__ import annotations

import _posixsubprocess
import os
import resource
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sessions_app.agents.process.world_off import (
    DISK,
    NETWORK,
    PROGRAMS,
    WRITING,
    Fence,
    WorldIsOff,
    closed_fence,
    start_nothing,
)
from sessions_app.core.replay.isolation import ALL_BUT_SOCKETS, EVERYTHING

_FILE_BYTES = 64 * 1024**2
_OPEN_FILES = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeLimits:
    """How much the team's code may use in one replay."""

    memory_mb: int = 1024
    seconds: int = 60
    output_mb: int = 16


def fence_code(limits: CodeLimits, folder: Path, hidden: Iterable[str] = (), *, has_network: bool = False) -> Fence:
    """Call it before the team's code is imported; there is no way back."""
    fence = closed_fence(folder, hidden, kept_from=ALL_BUT_SOCKETS if has_network else EVERYTHING)
    sys.dont_write_bytecode = True
    _limit(limits)
    _posixsubprocess.fork_exec = start_nothing
    home = os.path.realpath(folder)
    watched = PROGRAMS | _ON_DISK if has_network else NETWORK | PROGRAMS | _ON_DISK
    sys.addaudithook(lambda event, arguments: _audit(fence, watched, home, event, arguments))
    return fence


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


def _audit(fence: Fence, watched: frozenset[str], home: str, event: str, arguments: tuple[object, ...]) -> None:
    if event not in watched or (event in _ON_DISK and stays_home(event, arguments, home)):
        return
    fence.attempts.append(event)
    raise WorldIsOff(f"Replays are isolated: {event}.")


_ON_DISK = DISK | {"open"}
_TWO_PATHS = frozenset({"os.rename", "os.link"})
_IN_OPEN_FOLDERS = _TWO_PATHS | {"os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.utime"}
"""Their last arguments say in which open folder each path begins."""


def stays_home(event: str, arguments: tuple[object, ...], home: str) -> bool:
    """Reading is free everywhere: modules are loaded lazily. Writing is free in the folder."""
    if event == "open":
        flags = arguments[2] if len(arguments) > 2 else 0
        if not isinstance(flags, int) or not flags & WRITING or isinstance(arguments[0], int):
            return True
    if event == "os.symlink":
        return False
    paths = arguments[:2] if event in _TWO_PATHS else arguments[:1]
    folders = arguments[-len(paths) :] if event in _IN_OPEN_FOLDERS else (-1,) * len(paths)
    return all(_is_in(path, folder, home) for path, folder in zip(paths, folders, strict=True))


def _is_in(path: object, folder: object, home: str) -> bool:
    """`folder` is the open folder that a relative path begins in, as when a whole tree is removed; -1 for none."""
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    name = os.fsdecode(path)
    if isinstance(folder, int) and folder >= 0:
        name = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
    return name in (os.devnull, ":memory:") or os.path.realpath(name).startswith(home + os.sep)
