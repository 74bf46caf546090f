"""The parent's side of a code replay's process: what it is started with, and when it has to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict

from sessions_app.agents.code_fence import CodeLimits
from sessions_app.agents.sandbox import ChildDied, ReplayChild, bare_environment
from sessions_app.core.payload import JsonObject

_FIRST_WORDS = 4000
"""Bytes that are kept of what it prints before it is ready: why it cannot start. What it prints later may be
payloads, and is counted alone."""


class CodeCrashed(ChildDied):
    """The team's code ended its process, or had to be ended; the text says how. Trying again would do the same."""


class CodeChild(ReplayChild):
    """Serves one replay. `environment` is what the team declared for its code."""

    module = "sessions_app.agents.code_child"

    def __init__(self, target: str, limits: CodeLimits, environment: Mapping[str, str], *, is_live: bool) -> None:
        self._limits = limits
        self._folder = tempfile.TemporaryDirectory(prefix="code-replay-", ignore_cleanup_errors=True)
        self._reason: str | None = None
        self._first_words = b""
        self._timer: threading.Timer | None = None
        setup = {"target": target, "limits": asdict(limits), "folder": self._folder.name, "is_live": is_live}
        super().__init__(
            json.dumps(setup), environment=_of_code(environment, self._folder.name), stderr=subprocess.PIPE
        )
        self._counting = threading.Thread(target=self._count_output, daemon=True)
        self._counting.start()

    def answers(self, *, poll_seconds: float) -> Iterator[JsonObject | None]:
        """Raises `CodeCrashed`. The time runs from when the process is ready."""
        try:
            for answer in super().answers(poll_seconds=poll_seconds):
                if answer is not None and "ready" in answer:
                    self._start_timer()
                yield answer
        except ChildDied:
            raise CodeCrashed(self._last_words()) from None

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().end()
        self._counting.join(timeout=5)
        self._folder.cleanup()

    def _start_timer(self) -> None:
        seconds = self._limits.seconds
        self._timer = threading.Timer(seconds, self._kill, [f"took longer than {seconds} s"])
        self._timer.daemon = True
        self._timer.start()

    def _kill(self, reason: str) -> None:
        self._reason = self._reason or reason
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _count_output(self) -> None:
        assert self._process.stderr is not None
        printed, limit = 0, self._limits.output_mb * 1024**2
        with suppress(ValueError, OSError), self._process.stderr as pipe:
            while piece := os.read(pipe.fileno(), 65536):
                printed += len(piece)
                if self._timer is None:
                    self._first_words = (self._first_words + piece)[-_FIRST_WORDS:]
                if printed > limit:
                    self._kill(f"more than {self._limits.output_mb} MB of output")

    def _last_words(self) -> str:
        if self._reason is None:
            with suppress(subprocess.TimeoutExpired):
                return f"crashed: {self._ended(self._process.wait(timeout=2))}"
        return f"crashed: {self._reason or 'it stopped answering'}"

    def _ended(self, code: int) -> str:
        if code == -signal.SIGXCPU:
            return f"took longer than {self._limits.seconds} s"
        if code < 0:
            return f"{(signal.strsignal(-code) or 'a signal').lower()} (signal {-code})"
        if self._timer is None:
            self._counting.join(timeout=2)
            return f"could not start: {self._first_words.decode(errors='replace').strip().rpartition(chr(10))[2]}"
        return f"os._exit({code})"


def _of_code(declared: Mapping[str, str], folder: str) -> dict[str, str]:
    """Nothing of ours; folders of its own; one arena, for memory that is only reserved counts against its limit."""
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    own = {"HOME": folder, "TMPDIR": folder, "MALLOC_ARENA_MAX": "1", "REPLAY_RECORD": "off"}
    return {**bare_environment(), **path, **own, **declared}
