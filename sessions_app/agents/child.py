"""The process in which replays run: `python -m sessions_app.agents.child`.

It is told what to replay on standard input and answers on standard output, one JSON object a line:

    → {"id": …, "run_id": id of the run to produce, "record": text of a native record}
    ← {"id": …, "progress": [done, total]}
    ← {"id": …, "result": {"verdict", "divergence", "facts", "error", "live_calls", "record"}}

It ends when standard input does, so it never outlives its parent. It has no database, no secrets and
no network, and serves one replay after the other, because importing the library costs most of a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from dataclasses import asdict
from typing import Any, BinaryIO

from sessions_app.agents.world_off import Fence, switch_off
from sessions_app.core.payload import JsonObject, compact_json

MEMORY_BYTES = 4 * 1024**3
CPU_SECONDS = 3600


def main() -> None:
    lines, answers = sys.stdin.buffer, _take_over_stdout()
    from sessions_app.agents import replaying  # the library loads before the world goes off

    fence = switch_off(memory_bytes=MEMORY_BYTES, cpu_seconds=CPU_SECONDS)
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
    except Exception as error:  # the loop is foreign code; whatever it raises is the replay's outcome
        return {"verdict": "could_not_run", "error": f"{type(error).__name__}: {error}", **_world(fence)}
    return {
        "verdict": result.verdict,
        "divergence": asdict(result.divergence) if result.divergence else None,
        "facts": {**result.facts, "isolation": fence.words},
        "error": result.error,
        "record": record.decode() if record else None,
        **_world(fence),
    }


def _world(fence: Fence) -> JsonObject:
    return {"live_calls": len(fence.attempts), "attempts": fence.attempts[:20]}


def _take_over_stdout() -> BinaryIO:
    """Answers go out on a descriptor of their own; whatever prints to standard output goes to the log."""
    own = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return own


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
