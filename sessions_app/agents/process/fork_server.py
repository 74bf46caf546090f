"""The process that all replay processes are forked from: `python -m sessions_app.agents.process.fork_server CONTROL`.

Loading the library takes nearly two seconds of computing; here it happens once. What is forked has no more than a new
process would: this one is started with the bare environment, opens nothing and holds nothing of any replay.

CONTROL is the number of a Unix socket. Each job is one line of JSON, `module`, `arguments` and `environment`, with five
descriptors: standard input, output and error, the lifeline, and a socket on which the job's keeper tells how it goes.
It says the process id in one line and, when the process has ended, the exit code (of a signal the negative number) in
another. The id is given to no other process before the socket is closed.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

DESCRIPTORS = 5
_LINE_BYTES = 65536
_LOADED = (
    "sessions_app.agents.process.child",
    "sessions_app.agents.process.code_child",
    "sessions_app.agents.process.tool_child",
    "sessions_app.agents.process.load_child",
    "urllib3",  # it tries a socket while it is imported, which would count as reaching out
)
_LOADED_WITH_SDK = ("openai", "mcp")
"""Two thirds of loading the OpenAI Agents SDK. Not the SDK itself: a team may have an `agents` of its own."""


def main() -> None:
    """Comes back in the processes that are forked, each as the main program of its job."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
    while (job := _next_job(control)) is not None:
        request, descriptors = job
        if os.fork() == 0:
            control.close()
            _keep(request, descriptors)
            return
        for each in descriptors:
            os.close(each)
    os._exit(0)


def _load() -> None:
    """What is loaded here stays: the garbage collector looks through it neither now, which would be an eighth of the
    time, nor later. What cannot be loaded here cannot be loaded in the forked process either, which says so."""
    gc.disable()
    for module in (*_LOADED, *(_LOADED_WITH_SDK if _has_sdk() else ())):
        with suppress(ImportError):
            import_module(module)
    gc.freeze()
    gc.enable()


def _has_sdk() -> bool:
    try:
        distribution("openai-agents")
    except PackageNotFoundError:
        return False
    return True


def _next_job(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """None when nobody is left to send one."""
    line, descriptors, _, _ = socket.recv_fds(control, _LINE_BYTES, DESCRIPTORS)
    while line and not line.endswith(b"\n"):
        piece = control.recv(_LINE_BYTES)
        line = line + piece if piece else b""
    return (dict(json.loads(line)), descriptors) if line else None


def _keep(request: dict[str, Any], descriptors: Sequence[int]) -> None:
    """The keeper forks the process and waits for its end, for only a parent can. Comes back in the process alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *standard, lifeline, told = descriptors
    pid = os.fork()
    if pid == 0:
        os.close(told)
        _become(request, standard, lifeline)
        return
    for each in (*standard, lifeline):
        os.close(each)
    with suppress(OSError):
        _tell_of(pid, socket.socket(fileno=told))
    os._exit(0)


def _tell_of(pid: int, told: socket.socket) -> None:
    told.sendall(b"%d\n" % pid)
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert end is not None
    code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
    told.sendall(b"%d\n" % code)
    told.recv(1)


def _become(request: dict[str, Any], standard: Sequence[int], lifeline: int) -> None:
    """As if this process had been started with these descriptors, arguments and variables."""
    os.setsid()
    for number, each in enumerate(standard):
        os.dup2(each, number)
        os.close(each)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    tempfile.tempdir = None
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = [request["module"], str(lifeline), *request["arguments"]]


if __name__ == "__main__":
    main()
    import_module(sys.argv[0]).main()
