"""The world off: no network, no programs, no writing to disk, in the process that replays.

Three fences, from the outside in: what the kernel refuses (`seal`), resource limits, and an audit hook that refuses
each attempt of Python code and counts it. What native code cannot reach is measured, for the kernel may refuse less
than was asked of it.
"""

from __future__ import annotations

import _posixsubprocess
import os
import resource
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sessions_app.agents.process.fence_probes import Probes
from sessions_app.agents.process.seal import Seal, seal
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.isolation import EVERYTHING, Reach, fence_in_words

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

    sealed: Seal
    held: frozenset[Reach]
    """What native code could not reach when it was tried."""
    kept_from: tuple[Reach, ...] = EVERYTHING
    attempts: list[str] = field(default_factory=list)

    @property
    def kernel(self) -> list[str]:
        """What of the kernel's is in force, and holds."""
        own_network = self.sealed.own_network and "network" in self.held
        read_only = self.sealed.read_only_root and "disk" in self.held
        namespaces = "namespaces" if read_only else "network namespace"
        is_named = {
            namespaces: own_network,
            "read-only root": read_only,
            "Landlock": self.sealed.landlock and not read_only and "disk" in self.held,
            "seccomp": self.sealed.refused_calls and "programs" in self.held,
        }
        return [name for name, is_in_force in is_named.items() if is_in_force]

    @property
    def holds_all(self) -> bool:
        """Whether native code, too, was kept from everything."""
        return self.held.issuperset(EVERYTHING)

    @property
    def words(self) -> str:
        return fence_in_words(self.kernel, self.held, self.kept_from)

    def to_json(self) -> JsonObject:
        return {"kernel": self.kernel, "held": [reach for reach in EVERYTHING if reach in self.held]}


def switch_off(hidden: Iterable[str] = (), *, memory_bytes: int, cpu_seconds: int) -> Fence:
    """Call it before anything that is replayed runs; there is no way back. `hidden` cannot be read afterwards."""
    fence = closed_fence(None, hidden)
    sys.dont_write_bytecode = True  # until here it was kept: compiling the library takes more than a second
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    _posixsubprocess.fork_exec = start_nothing
    sys.addaudithook(lambda event, arguments: _audit(fence, event, arguments))
    return fence


def closed_fence(folder: Path | None, hidden: Iterable[str], *, kept_from: tuple[Reach, ...] = EVERYTHING) -> Fence:
    """The kernel's part of a fence, and what of it holds. `folder` is the one that can be written."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # short of memory, the kernel takes us and not the worker
    probes = Probes(Path(tempfile.gettempdir()) if folder is None else folder.parent)
    sealed = seal(folder, hidden, has_network="network" not in kept_from)
    held = probes.held() - (frozenset() if sealed.keeps_the_disk else {"disk"})
    return Fence(sealed=sealed, held=held, kept_from=kept_from)


def start_nothing(*call: object) -> int:
    """In the place of what multiprocessing calls directly, without an event."""
    sys.audit("subprocess.Popen")
    return -1


def _audit(fence: Fence, event: str, arguments: tuple[object, ...]) -> None:
    if event in _REFUSED or (event == "open" and _writes(arguments)):
        fence.attempts.append(event)
        raise WorldIsOff(f"Replays are isolated: {event}.")


def _writes(arguments: tuple[object, ...]) -> bool:
    """`open` events carry path, mode and flags; reading stays possible, modules are loaded lazily."""
    flags = arguments[2] if len(arguments) > 2 else 0
    return isinstance(flags, int) and bool(flags & WRITING) and arguments[0] != os.devnull
