"""The process in which replays run: `python -m sessions_app.agents.child`.

It is told what to replay on standard input and answers on standard output, one JSON object a line:

    → {"id": …, "run_id": id of the run to produce, "record": text of a native record}
    ← {"id": …, "progress": [done, total]}
    ← {"id": …, "result": {"verdict", "divergence", "facts", "error", "live_calls", "record"}}

It never outlives its parent: it ends when standard input does, and the kernel kills it when the pipe
named on its command line is closed. It has no database, no secrets and no network, and serves one
replay after the other, because importing the library costs most of a second.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from typing import Any, BinaryIO

from sessions_app.agents.world_off import Fence, switch_off
from sessions_app.core.payload import JsonObject, compact_json

MEMORY_BYTES = 4 * 1024**3
CPU_SECONDS = 3600


def main() -> None:
    _end_with_parent(int(sys.argv[1]))
    lines, answers = sys.stdin.buffer, _take_over_stdout()
    from sessions_app.agents import replaying  # the library loads before the world goes off

    fence = switch_off(memory_bytes=MEMORY_BYTES, cpu_seconds=CPU_SECONDS)
    _silence_stderr()
    _say(answers, {"ready": True})
    for line in _lines(lines):
        request = json.loads(line)
        _say(answers, {"id": request["id"], "result": _serve(request, fence, answers, replaying)})


def _serve(request: JsonObject, fence: Fence, answers: BinaryIO, replaying: Any) -> JsonObject:
    fence.attempts.clear()

    def on_progress(done: int, total: int) -> None:
        _say(answers, {"id": request["id"], "progress": [done, total]})

    try:
        result, record = asyncio.run(replaying.replay(request["record"].encode(), request["run_id"], on_progress))
    except BaseException as error:  # the loop is foreign code; whatever it raises, SystemExit too, is the outcome
        words = f"{type(error).__name__}: {error}"
        return {"verdict": "could_not_run", "error": words, "facts": _isolation(fence), **_world(fence)}
    return {
        "verdict": result.verdict,
        "divergence": asdict(result.divergence) if result.divergence else None,
        "facts": {**result.facts, **_isolation(fence)},
        "error": result.error,
        "record": record.decode() if record else None,
        **_world(fence),
    }


def _world(fence: Fence) -> JsonObject:
    return {"live_calls": len(fence.attempts)}


def _isolation(fence: Fence) -> JsonObject:
    return {"isolation": fence.words, **({"refused": fence.attempts[:20]} if fence.attempts else {})}


def _end_with_parent(lifeline: int) -> None:
    """A thread cannot end us while C code holds the interpreter, nor can it while we are stopped; the kernel can."""
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)


def _take_over_stdout() -> BinaryIO:
    """Answers go out on a descriptor of their own; whatever prints to standard output goes nowhere."""
    own = os.fdopen(os.dup(1), "wb", buffering=0)
    _to_nowhere(1)
    return own


def _silence_stderr() -> None:
    """Up to here it may say why it cannot start. What is replayed may print payloads, which no log may hold."""
    sys.stderr.flush()
    _to_nowhere(2)


def _to_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _say(answers: BinaryIO, message: JsonObject) -> None:
    try:
        answers.write(compact_json(message) + b"\n")
    except BrokenPipeError:
        os._exit(0)


def _lines(source: BinaryIO) -> Any:
    """Requests as they come. A thread waits for the end of input, so that a busy child notices it."""
    import queue

    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        for line in source:
            waiting.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield waiting.get()


if __name__ == "__main__":
    main()
