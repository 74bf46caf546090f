"""Processes of a supervisor that was killed: found by what it wrote down, and ended."""

import os
import shutil
import signal
import sys
from pathlib import Path

from replay_web.supervisor.home import Home
from replay_web.supervisor.processes import session_members, started_at, wait_gone


def end_leftovers(home: Home) -> None:
    """End what the last supervisor of this home left running."""
    state = home.state()
    if sys.platform == "linux" and state.get("boot") == boot_id():
        end([pid for child in state.get("children", {}).values() for pid in survivors(**child)])
    if "sockets" in state:
        shutil.rmtree(state["sockets"], ignore_errors=True)
    home.forget()


def survivors(pid: int, started: int) -> list[int]:
    """Living members of the session that this child led; none when the pid went to somebody else."""
    if started_at(pid) not in (None, started):
        return []
    return [member for member in session_members(pid) if (started_at(member) or 0) >= started]


def end(pids: list[int]) -> None:
    """Politely first: PostgreSQL closes its files on SIGINT, the others on SIGTERM."""
    for how, patience in ((signal.SIGINT, 5.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        for pid in pids:
            if started_at(pid) is not None:
                os.kill(pid, how)
        if wait_gone(pids, patience):
            return


def boot_id() -> str:
    """Names this run of the machine: pids of an earlier one mean nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
