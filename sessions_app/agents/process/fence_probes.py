"""What native code can reach from inside of a fence, tried by native calls, which raise no events in Python.

Probes are prepared outside, where they succeed, and tried inside. What could not be prepared proves nothing and counts
as within reach.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import socket
import struct
from pathlib import Path

from sessions_app.core.replay.isolation import Reach

_libc = ctypes.PyDLL(None, use_errno=True)
"""Its calls keep the interpreter: a copy of this process, should one come to be, has this thread alone."""


class Probes:
    """Prepare them before the fence is closed, and ask behind it what holds."""

    def __init__(self, outside: Path) -> None:
        """`outside` is a folder that can be written now and must not be writable behind the fence."""
        self._listener = _reachable_listener()
        self._file = _creatable_file(outside)

    def held(self) -> frozenset[Reach]:
        """What native code cannot reach. Call it once."""
        found: dict[Reach, bool] = {
            "network": self._listener is not None and not _can_connect(self._listener),
            "local sockets": not _can_make_local_sockets(),
            "disk": self._file is not None and not _can_create(self._file),
            "programs": not _can_start_programs(),
        }
        if self._listener is not None:
            self._listener.close()
        return frozenset(reach for reach, is_held in found.items() if is_held)


def _reachable_listener() -> socket.socket | None:
    try:
        listener = socket.create_server(("127.0.0.1", 0))
    except OSError:
        return None
    return listener if _can_connect(listener) else None


def _creatable_file(folder: Path) -> Path | None:
    path = folder / f"replay-fence-{secrets.token_hex(8)}"
    return path if _can_create(path) else None


def _can_connect(listener: socket.socket) -> bool:
    made = _libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    if made < 0:
        return False
    address, port = listener.getsockname()
    where = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(address) + bytes(8)
    try:
        return bool(_libc.connect(made, where, len(where)) == 0)
    finally:
        os.close(made)


def _can_make_local_sockets() -> bool:
    """Those that are files reach whatever listens on this machine, also from another network namespace."""
    pair = (ctypes.c_int * 2)()
    if _libc.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM, 0, pair) == 0:  # either half can send elsewhere
        for made in pair:
            os.close(made)
        return True
    made = _libc.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
    if made >= 0:
        os.close(made)
    return bool(made >= 0)


def _can_create(path: Path) -> bool:
    made = _libc.open(os.fsencode(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    if made < 0:
        return False
    os.close(made)
    os.unlink(path)
    return True


def _can_start_programs() -> bool:
    """A program that is not there tells whether one that is would have been started."""
    nothing = (ctypes.c_char_p * 1)(None)
    _libc.execve(b"/nonexistent/program", nothing, nothing)
    if ctypes.get_errno() == errno.ENOENT:
        return True
    made = _libc.fork()
    if made == 0:
        _libc._exit(0)
    if made > 0:
        os.waitpid(made, 0)
    return bool(made >= 0)
