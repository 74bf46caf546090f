"""The child's side of the talk with its parent: one JSON object a line.

    → {"id": …, …}                        a replay to make
    ← {"id": …, "progress": [done, total]}
    ← {"id": …, "n": 1, "ask": {…}}       a question, while the replay waits
    → {"id": …, "n": 1, "reply": …}
    ← {"id": …, "result": {…}}

The process never outlives its parent: it ends when standard input does, and the kernel kills it when the pipe named on
its command line is closed.
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from sessions_app.core.payload import JsonObject, JsonValue, compact_json


class Pipe:
    """Open it before anything else may print: from then on standard output goes nowhere."""

    def __init__(self, *, lifeline: int) -> None:
        _end_with_parent(lifeline)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._answers = _take_over_stdout()
        self._source = sys.stdin.buffer
        self._asked = 0

    def say(self, message: JsonObject) -> None:
        try:
            self._answers.write(compact_json(message) + b"\n")
        except BrokenPipeError:
            os._exit(0)

    def requests(self) -> Iterator[JsonObject]:
        """Call it behind the fence: a process with a second thread gets no namespace of its own."""
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            yield self._next()

    def ask(self, request_id: str, question: JsonObject) -> JsonValue:
        """The parent's reply. Whoever asks is waited for, so replies come in order."""
        self._asked += 1
        self.say({"id": request_id, "n": self._asked, "ask": question})
        reply = self._next()
        if (reply.get("id"), reply.get("n")) != (request_id, self._asked):
            raise RuntimeError("the parent answered something that was not asked")
        return reply.get("reply")

    def _next(self) -> JsonObject:
        return dict(json.loads(self._lines.get()))

    def _read(self) -> None:
        """In a thread, so that a busy child notices the end of input."""
        for line in self._source:
            self._lines.put(line)
        os._exit(0)


def _end_with_parent(lifeline: int) -> None:
    """A thread cannot end us while C code holds the interpreter, nor can it while we are stopped; the kernel can."""
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)


def _take_over_stdout() -> Any:
    """Answers go out on a descriptor of their own."""
    own = os.fdopen(os.dup(1), "wb", buffering=0)
    to_nowhere(1)
    return own


def to_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
