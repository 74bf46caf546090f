"""What native code reaches from inside of a fence: `python -m tests.agents.reaching FENCE FOLDER` prints it as JSON.

FENCE is `none`, `whole` or `without namespaces`, where a filter of the kernel's refuses them as containers do. Reached
for is a process of the same user, as a worker and its replay are, and what lies in FOLDER: a named pipe `pipe`, a file
`file`, a socket `socket` that takes datagrams, and `scratch`, the one folder that may be written.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sessions_app.agents.process import seal

SECRET = "REACHING_SECRET"
_CLONE_NEWUSER = 0x10000000
_F_SETFL, _F_SETOWN, _F_SETSIG = 4, 8, 10
_PR_SET_DUMPABLE = 4
_NOBODY = 65534

_libc = ctypes.PyDLL(None)


def send_a_signal(process: int, folder: Path) -> bool:
    return bool(_libc.kill(process, 0) == 0)


def send_a_signal_by_a_pipe(process: int, folder: Path) -> bool:
    """The kernel sends it when the pipe can be read."""
    reader, writer = os.pipe()
    if _libc.fcntl(reader, _F_SETOWN, process) != 0:
        return False
    _libc.fcntl(reader, _F_SETSIG, signal.SIGUSR1)
    _libc.fcntl(reader, _F_SETFL, os.O_ASYNC)
    os.write(writer, b"!")
    return _has_ended(process)


def _has_ended(process: int, seconds: float = 1) -> bool:
    until = time.monotonic() + seconds
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def read_the_environment(process: int, folder: Path) -> bool:
    return SECRET.encode() in _read(f"/proc/{process}/environ")


def open_the_memory(process: int, folder: Path) -> bool:
    return bool(_libc.open(b"/proc/%d/mem" % process, os.O_RDONLY) >= 0)


def limit_the_memory(process: int, folder: Path) -> bool:
    """A process that gets no more of it ends soon."""
    limits = (ctypes.c_uint64 * 2)(0, 2**40)
    return bool(_libc.prlimit(process, resource.RLIMIT_AS, limits, None) == 0)


def send_a_datagram_from_a_pair(process: int, folder: Path) -> bool:
    pair = (ctypes.c_int * 2)()
    if _libc.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM, 0, pair) != 0:
        return False
    where = struct.pack("=H", socket.AF_UNIX) + os.fsencode(folder / "socket") + b"\0"
    return bool(_libc.sendto(pair[0], b"out", 3, 0, where, len(where)) == 3)


def write_to_a_named_pipe(process: int, folder: Path) -> bool:
    made = _libc.open(os.fsencode(folder / "pipe"), os.O_WRONLY | os.O_NONBLOCK)
    return bool(made >= 0 and os.write(made, b"out") == 3)


def write_to_a_file(process: int, folder: Path) -> bool:
    return bool(_libc.open(os.fsencode(folder / "file"), os.O_WRONLY) >= 0)


def shorten_a_file(process: int, folder: Path) -> bool:
    return bool(_libc.truncate(os.fsencode(folder / "file"), ctypes.c_long(0)) == 0)


def make_a_file(process: int, folder: Path) -> bool:
    return bool(_libc.open(os.fsencode(folder / "new"), os.O_WRONLY | os.O_CREAT, 0o600) >= 0)


def make_a_folder(process: int, folder: Path) -> bool:
    return bool(_libc.mkdir(os.fsencode(folder / "newer"), 0o700) == 0)


def rename_a_file(process: int, folder: Path) -> bool:
    one, other = os.fsencode(folder / "file"), os.fsencode(folder / "renamed")
    return bool(_libc.rename(one, other) == 0 and _libc.rename(other, one) == 0)


def change_a_mode(process: int, folder: Path) -> bool:
    return bool(_libc.chmod(os.fsencode(folder / "file"), 0o600) == 0)


def change_a_time(process: int, folder: Path) -> bool:
    return bool(_libc.utimes(os.fsencode(folder / "file"), None) == 0)


REACHES: tuple[Callable[[int, Path], bool], ...] = (
    send_a_signal,
    read_the_environment,
    open_the_memory,
    limit_the_memory,
    send_a_datagram_from_a_pair,
    write_to_a_named_pipe,
    write_to_a_file,
    shorten_a_file,
    make_a_file,
    make_a_folder,
    rename_a_file,
    change_a_mode,
    change_a_time,
    send_a_signal_by_a_pipe,  # the last: it ends the process
)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def become_an_ordinary_user(folder: Path) -> None:
    """Root's rights would hide what a fence does not keep away."""
    if os.geteuid() != 0:
        return
    for path in (folder, *folder.iterdir()):
        os.chown(path, _NOBODY, _NOBODY)
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # as a process that was started by this user


def wait_for_a_signal() -> int:
    """A process that lives as long as this one, unless a signal ends it."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    return process


def refuse_namespaces() -> None:
    import pyseccomp

    made = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    refuse = pyseccomp.ERRNO(errno.EPERM)
    made.add_rule(refuse, "unshare")
    made.add_rule(refuse, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, _CLONE_NEWUSER, _CLONE_NEWUSER))
    made.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    made.load()


def main(fence: str, folder: Path) -> None:
    import pyseccomp  # noqa: F401 - an ordinary user may not be able to read it

    become_an_ordinary_user(folder)
    process = wait_for_a_signal()
    made = seal.Seal()
    if fence == "without namespaces":
        refuse_namespaces()
    if fence != "none":
        made = seal.seal(folder / "scratch", [], has_network=False)
    reached = [reach.__name__ for reach in REACHES if reach(process, folder)]
    (folder / "scratch" / "own").write_text("can be written")
    print(json.dumps({"reached": reached, "namespaces": made.own_network, "landlock": made.landlock}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
