"""The world off: no network, no programs, no writing to disk, in the process that replays.

Three fences, from the outside in: a network namespace without interfaces where the kernel lets us
have one; resource limits; and an audit hook that refuses and counts each attempt. It keeps honest
code from the world by accident, it is no prison for hostile code.
"""

from __future__ import annotations

import _posixsubprocess
import ctypes
import os
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
NETWORK = frozenset(
    {
        "socket.connect",
        "socket.bind",
        "socket.sendto",
        "socket.sendmsg",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.getnameinfo",
        "syslog.openlog",
        "syslog.syslog",
    }
)
PROGRAMS = frozenset(
    {
        *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
        *("os.kill", "os.killpg"),
    }
)
DISK = frozenset(
    {
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"),
        *("os.chmod", "os.chown", "os.utime", "os.setxattr", "os.removexattr"),
        "sqlite3.connect",
    }
)
_REFUSED = NETWORK | PROGRAMS | DISK
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OPEN_FILES = 256


class WorldIsOff(Exception):
    """Something in a replay reached for the network, a program or the disk."""


@dataclass
class Fence:
    """What keeps the world out, and how often something tried to get there."""

    has_own_network: bool = False
    attempts: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        return "network namespace and audit hook" if self.has_own_network else "audit hook"


def switch_off(*, memory_bytes: int, cpu_seconds: int) -> Fence:
    """Call it before anything that is replayed runs; there is no way back."""
    fence = Fence(has_own_network=leave_network())
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # short of memory, the kernel takes us and not the worker
    sys.dont_write_bytecode = True  # until here it was kept: compiling the library takes more than a second
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # what writes from C raises no event
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    _posixsubprocess.fork_exec = start_nothing
    sys.addaudithook(lambda event, arguments: _audit(fence, event, arguments))
    return fence


def start_nothing(*call: object) -> int:
    """In the place of what multiprocessing calls directly, without an event."""
    sys.audit("subprocess.Popen")
    return -1


def leave_network() -> bool:
    """A namespace of its own has not even a loopback interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    return any(libc.unshare(flags) == 0 for flags in (_CLONE_NEWNET, _CLONE_NEWUSER | _CLONE_NEWNET))


def _audit(fence: Fence, event: str, arguments: tuple[object, ...]) -> None:
    if event in _REFUSED or (event == "open" and _writes(arguments)):
        fence.attempts.append(event)
        raise WorldIsOff(f"The world is off in a replay: {event}.")


def _writes(arguments: tuple[object, ...]) -> bool:
    """`open` events carry path, mode and flags; reading stays possible, modules are loaded lazily."""
    flags = arguments[2] if len(arguments) > 2 else 0
    return isinstance(flags, int) and bool(flags & WRITING) and arguments[0] != os.devnull
