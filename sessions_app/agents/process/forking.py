"""The parent's side of the fork server: processes that are forked from it instead of started."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parents[3]
_MODULE = "sessions_app.agents.process.fork_server"
_KEPT = (
    *("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "LD_LIBRARY_PATH"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
)
"""A replay process gets no secrets and no addresses: only what Python needs to start."""


def bare_environment() -> dict[str, str]:
    """What Python needs to start, and nothing of ours; one arena, for memory that is only reserved counts against the
    limit of a code replay."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYDANTIC_AI_NO_BANNER": "1", "TZ": "UTC", "MALLOC_ARENA_MAX": "1"}


@dataclass
class ForkedProcess:
    """One process, with as much of `subprocess.Popen` as is needed of it."""

    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO | None
    lifeline: BinaryIO
    """Nothing is ever written to it; the kernel closes it when we die, and tells the process."""
    told: socket.socket
    """Where its keeper says the process id, and the exit code behind it."""
    _heard: bytes = b""
    _has_ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pid(self) -> int | None:
        """None where the fork server died before it forked."""
        while not self._lines() and not self._has_ended:
            self._listen(None)
        lines = self._lines()
        return int(lines[0]) if lines else None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        self._listen(0)
        return self._code()

    def wait(self, timeout: float | None = None) -> int:
        """Raises `subprocess.TimeoutExpired`."""
        while (code := self._code()) is None:
            if not self._listen(timeout):
                raise subprocess.TimeoutExpired(_MODULE, timeout or 0)
        return code

    def kill(self) -> None:
        """With whatever it has started. Its id is its own as long as we listen to its keeper."""
        if self.poll() is None and self.pid is not None:
            for kill in (os.killpg, os.kill):  # one that was just forked has no group of its own yet
                with suppress(ProcessLookupError, PermissionError):
                    kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        for pipe in (self.stdin, self.lifeline, self.told):
            with suppress(OSError):
                pipe.close()

    def _lines(self) -> list[bytes]:
        return self._heard.split(b"\n")[:-1]

    def _code(self) -> int | None:
        lines = self._lines()
        if len(lines) > 1:
            return int(lines[1])
        return -signal.SIGKILL if self._has_ended else None

    def _listen(self, timeout: float | None) -> bool:
        """Whether the keeper said something in this time, or ended."""
        if self._has_ended or len(self._lines()) > 1:
            return True
        if not select.select([self.told], [], [], timeout)[0]:
            return False
        with self._lock, suppress(BlockingIOError):  # another thread was first
            piece = self.told.recv(64, socket.MSG_DONTWAIT)
            self._heard += piece
            self._has_ended = not piece
        return True


class ForkServer:
    """Started with the first process that is wanted, and again where it has died."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()

    def fork(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], *, with_stderr: bool
    ) -> ForkedProcess:
        """A process that runs `main` of the module, told `arguments` behind the number of its lifeline. Does not wait
        for it. Without `with_stderr` it shares ours."""
        request = {"module": module, "arguments": list(arguments), "environment": dict(environment)}
        input_, output, lifeline = os.pipe(), os.pipe(), os.pipe()
        error = os.pipe() if with_stderr else None
        told, keeper = socket.socketpair()
        theirs = [input_[0], output[1], error[1] if error else 2, lifeline[0], keeper.fileno()]
        try:
            self._send(json.dumps(request).encode() + b"\n", theirs)
        finally:
            keeper.close()
            for each in (input_[0], output[1], lifeline[0], *([error[1]] if error else [])):
                os.close(each)
        return ForkedProcess(
            stdin=os.fdopen(input_[1], "wb"),
            stdout=os.fdopen(output[0], "rb"),
            stderr=os.fdopen(error[0], "rb") if error else None,
            lifeline=os.fdopen(lifeline[1], "wb"),
            told=told,
        )

    def close(self) -> None:
        """What was forked lives on."""
        if self._server is not None and self._control is not None:
            self._control.close()
            self._server.kill()
            self._server.wait()
        self._control = None

    def _send(self, line: bytes, descriptors: list[int]) -> None:
        with self._lock:
            try:
                _send(self._running(), line, descriptors)
            except OSError:  # it died between two replays
                self.close()
                _send(self._running(), line, descriptors)

    def _running(self) -> socket.socket:
        if self._control is None:
            own, other = socket.socketpair()
            self._server = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(other.fileno())],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                env=bare_environment(),
                start_new_session=True,
                pass_fds=(other.fileno(),),
            )
            other.close()
            self._control = own
        return self._control


def _send(control: socket.socket, line: bytes, descriptors: list[int]) -> None:
    sent = socket.send_fds(control, [line], descriptors)
    control.sendall(line[sent:])


fork_server = ForkServer()
"""The one of this process."""
atexit.register(fork_server.close)
