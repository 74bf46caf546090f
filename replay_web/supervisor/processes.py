"""One child process: started so that it ends with us, found again later, stopped with all it started."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from replay_web.supervisor.account import Account, RunAs

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LOG_LIMIT = 8 * 1024 * 1024
libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What to run and how to end it."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    account: Account | None = None
    """None runs it as ourselves."""
    folder: Path = Path("/")
    open_files: Collection[int] = ()
    """Descriptors that it inherits."""
    stop_signal: signal.Signals = signal.SIGTERM
    grace: float = 10.0
    """Seconds it may take to end by itself."""
    longest_pause: float = 8.0
    """Seconds between its end and the next start when it ends again and again. Loading Django is dear."""
    is_killed_while_starting: bool = False
    """For one that does not listen to signals before it serves, and has nothing to lose by then."""
    is_ready: Callable[[int], bool] = field(default=lambda pid: True)
    """Asked with the pid until it says yes."""


def start(program: Program) -> subprocess.Popen[bytes]:
    """Start it in a session of its own, so that Ctrl-C reaches it through us, in order."""
    with program.log.open("ab") as log:
        return subprocess.Popen(
            program.command,
            env=program.environment,
            cwd=program.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=program.open_files,
            preexec_fn=end_with_parent(program.stop_signal),
            **(program.account.as_options() if program.account else RunAs()),
        )


def end_with_parent(stop_signal: signal.Signals) -> Callable[[], None] | None:
    """Have the kernel send this signal to the child when we are killed. Linux only."""
    if libc is None:
        return None
    parent, prctl = os.getpid(), libc.prctl

    def ask_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, int(stop_signal))
        if os.getppid() != parent:  # we were gone before the kernel was asked
            os._exit(1)

    return ask_kernel


def end_with_server() -> None:
    """Of a process that `multiprocessing` started, as servers start those that answer: without the server nobody would
    stop it, and its port would stay taken. Linux only."""
    if libc is not None and multiprocessing.parent_process() is not None:
        libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))


def adopt_orphans() -> None:
    """Become the parent of every grandchild whose own parent dies, so that a stop leaves none behind."""
    if libc is not None:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)


def wait_end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Give it time to end, then kill what is left of its group."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    kill_group(process.pid)
    process.wait()


def kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone, or another user's by now
        os.killpg(group, signal.SIGKILL)


def children() -> set[int]:
    """Our living children, adopted ones too."""
    found = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found |= {int(pid) for pid in task.read_text().split()}
    return found


def reap_adopted(known: set[int]) -> None:
    """Bury adopted children that have ended; those in `known` are waited for elsewhere."""
    for pid in children() - known:
        os.waitpid(pid, os.WNOHANG)


def kill_adopted() -> None:
    """End whatever our children left behind."""
    for pid in children():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def started_at(pid: int) -> int | None:
    """When a process started, in the kernel's ticks; with the pid it names a process for good."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields else None


def stat_fields(pid: int) -> list[str]:
    """/proc/PID/stat from the third field on (state, ppid, pgrp, session ...); empty for the dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return [] if fields[0] in "ZX" else fields


def session_members(session: int) -> list[int]:
    """Living processes of a session, its leader's descendants that did not leave it."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return [pid for pid in pids if stat_fields(pid)[3:4] == [str(session)]]


def wait_gone(pids: Sequence[int], seconds: float) -> bool:
    """Whether all of them end within the time."""
    until = time.monotonic() + seconds
    while any(stat_fields(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def trim_log(log: Path) -> None:
    """Keep a log bounded: the older part moves aside once, and is dropped the next time."""
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.with_suffix(".old.log").write_bytes(log.read_bytes())
        os.truncate(log, 0)
