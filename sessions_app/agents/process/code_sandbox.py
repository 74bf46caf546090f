"""The parent's side of a code replay's processes: what they are started with, and when they have to end."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

from sessions_app.agents.process.code_fence import CodeLimits
from sessions_app.agents.process.forking import bare_environment
from sessions_app.agents.process.sandbox import ChildDied, ReplayChild
from sessions_app.core.payload import JsonObject

_FIRST_WORDS = 4000
"""Bytes that are kept of what it prints before it is ready: why it cannot start. What it prints later may be
payloads, and is counted alone."""


class CodeCrashed(ChildDied):
    """The team's code ended its process, or had to be ended; the text says how. Trying again would do the same."""

    def __init__(self, reason: str, *, live_calls: int = 0, has_begun: bool = True) -> None:
        """`live_calls` of tools had happened by then; `has_begun` says whether the process came as far as the code."""
        super().__init__(f"crashed: {reason}")
        self.reason = reason
        self.live_calls = live_calls
        self.has_begun = has_begun


class CodeProcess(ReplayChild):
    """Runs the team's code. `environment` is what the team declared for it."""

    def __init__(self, target: str, limits: CodeLimits, environment: Mapping[str, str]) -> None:
        self._limits = limits
        self._folder = tempfile.TemporaryDirectory(prefix="code-replay-", ignore_cleanup_errors=True)
        self._reason: str | None = None
        self._first_words = b""
        self._timer: threading.Timer | None = None
        super().__init__(
            {"target": target, "limits": asdict(limits), "folder": self._folder.name},
            environment=_of_code(environment, self._folder.name),
            with_stderr=True,
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
            raise self._crash() from None

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
        self._process.kill()

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

    def _crash(self) -> CodeCrashed:
        has_begun = self._timer is not None
        if self._reason is None:
            with suppress(subprocess.TimeoutExpired):
                return CodeCrashed(self._ended(self._process.wait(timeout=2)), has_begun=has_begun)
        return CodeCrashed(self._reason or "it stopped answering", has_begun=has_begun)

    def _ended(self, code: int) -> str:
        if code == -signal.SIGXCPU:
            return f"took longer than {self._limits.seconds} s"
        if code < 0:
            return f"{(signal.strsignal(-code) or 'a signal').lower()} (signal {-code})"
        if self._timer is None:
            self._counting.join(timeout=2)
            return f"could not start: {self._first_words.decode(errors='replace').strip().rpartition(chr(10))[2]}"
        return f"os._exit({code})"


class ToolChild(CodeProcess):
    """Runs live tools of one replay, each call after the other."""

    module = "sessions_app.agents.process.tool_child"

    def call(self, question: JsonObject) -> JsonObject:
        """As `live_tools` says. Raises `CodeCrashed`."""
        self.begin({"id": str(self.served + 1), "question": question})
        for answer in self.answers(poll_seconds=60):
            if answer is not None and answer.get("id") == str(self.served):
                return dict(answer["result"])
        raise CodeCrashed("it stopped answering")


class LoadChild(CodeProcess):
    """Loads agents and does nothing with them."""

    module = "sessions_app.agents.process.load_child"

    def loaded(self, targets: Sequence[str]) -> Iterator[JsonObject]:
        """Of each target in turn the `problem` that keeps it from being loaded, and whether it `reads_state`. Raises
        `CodeCrashed` at the one that ends the process."""
        self.begin({"id": "load", "targets": list(targets)})
        told = (answer for answer in self.answers(poll_seconds=60) if answer and "target" in answer)
        yield from (answer for _, answer in zip(targets, told, strict=False))


class CodeChild(CodeProcess):
    """Serves one replay. `live` names the tools that may run; they run in a process beside it."""

    module = "sessions_app.agents.process.code_child"
    tool_child = ToolChild

    def __init__(
        self, target: str, limits: CodeLimits, environment: Mapping[str, str], *, live: Collection[str] = ()
    ) -> None:
        self._live = frozenset(live)
        self._tools = self.tool_child(target, limits, environment) if live else None
        self.live_calls = 0
        """Calls of live tools that happened."""
        super().__init__(target, limits, environment)

    def run_live_tool(self, question: JsonObject) -> JsonObject:
        """The answer to a question of the child's. A tool whose process crashes ends the replay."""
        name = question["tool"]
        if self._tools is None or name not in self._live:
            return {"cannot": f"{name} was not allowed for this replay."}
        self.live_calls += 1
        try:
            answer = self._tools.call(question)
        except CodeCrashed as crash:
            self._kill(f"live tool {name}: {crash.reason}")
            return {"cannot": f"crashed: live tool {name}: {crash.reason}"}
        if "cannot" in answer:
            self.live_calls -= 1
        return answer

    def end(self) -> None:
        if self._tools is not None:
            self._tools.end()
        super().end()

    def _crash(self) -> CodeCrashed:
        crash = super()._crash()
        return CodeCrashed(crash.reason, live_calls=self.live_calls, has_begun=crash.has_begun)


def _of_code(declared: Mapping[str, str], folder: str) -> dict[str, str]:
    """Nothing of ours; folders of its own."""
    own = {"HOME": folder, "TMPDIR": folder, "REPLAY_RECORD": "off"}
    return {**bare_environment(), **own, **declared}
