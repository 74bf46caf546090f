"""The parent's side of the replay process: start it, hand it work, read what it says, end it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from sessions_app.agents.process.forking import ROOT, bare_environment, fork_server
from sessions_app.core.payload import JsonObject, compact_json

_SECRET_FILES = tuple(f"{name}_FILE" for name in ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "REPLAY_MODEL_KEY"))

_SERVES = 100
"""Replays after which a child is replaced."""


class ChildDied(Exception):
    """The replay process ended without an answer."""


class ReplayChild:
    """One child process; serves one replay at a time."""

    module = "sessions_app.agents.process.child"

    def __init__(
        self,
        setup: JsonObject | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        with_stderr: bool = False,
    ) -> None:
        """`setup` is what this kind of child is told on its command line; `environment` stands in for the little that
        is given by default."""
        self._process = fork_server.fork(
            self.module,
            [json.dumps({"hidden": hidden_places(), **(setup or {})})],
            bare_environment() if environment is None else environment,
            with_stderr=with_stderr,
        )
        self.served = 0
        self._answers: queue.SimpleQueue[JsonObject | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        """Raises `ChildDied` where it could not be started."""
        pid = self._process.pid
        if pid is None:
            raise ChildDied("it could not be started")
        return pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def begin(self, request: JsonObject) -> None:
        """Hand it a replay to make."""
        self.served += 1
        self.send(request)

    def send(self, message: JsonObject) -> None:
        """Does not wait for the child to read it all: one that hangs must not hang its worker."""
        threading.Thread(target=self._write, args=(compact_json(message) + b"\n",), daemon=True).start()

    def answers(self, *, poll_seconds: float) -> Iterator[JsonObject | None]:
        """What the child says; None whenever it has said nothing for a while. Raises `ChildDied`."""
        while True:
            try:
                answer = self._answers.get(timeout=poll_seconds)
            except queue.Empty:
                yield None
                continue
            if answer is None:
                raise ChildDied(self._last_words())
            yield answer

    def end(self) -> None:
        """Kill the child and whatever it may have started; safe to call twice."""
        self._process.kill()
        self._process.wait()
        self._process.close()

    def _write(self, line: bytes) -> None:
        with suppress(BrokenPipeError, ValueError):  # it ended; the reader sees the end of the answers and says so
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _read(self) -> None:
        with suppress(ValueError), self._process.stdout as lines:
            for line in lines:
                self._answers.put(json.loads(line))
        self._answers.put(None)

    def _last_words(self) -> str:
        """Why it ended. One that only stopped answering is not waited for."""
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "it stopped answering"
        return f"signal {-code}" if code < 0 else f"exit code {code}"


class ChildPool:
    """Idle children, kept for the next replay: they are behind their fence already."""

    def __init__(self, start: Callable[[], ReplayChild] = ReplayChild) -> None:
        self._start = start
        self._idle: list[ReplayChild] = []
        self._lock = threading.Lock()

    def warm_up(self) -> None:
        """Start one child ahead of the first replay: the library loads while the worker waits."""
        self.give_back(self._start())

    def take(self) -> ReplayChild:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.is_alive:
                    return child
                child.end()
        return self._start()

    def give_back(self, child: ReplayChild) -> None:
        """A child that has served long enough is let go: its CPU time is limited as a whole."""
        if child.served >= _SERVES:
            child.end()
            return
        with self._lock:
            self._idle.append(child)

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().end()


def hidden_places() -> list[str]:
    """What the server keeps on this machine, and no replay needs: its home, payloads, files with secrets."""
    home = os.environ.get("REPLAY_HOME") or str(ROOT / ".replay")
    named = [os.environ.get(name) for name in ("REPLAY_BLOBS", *_SECRET_FILES)]
    return [os.path.abspath(place) for place in (home, *named) if place]
