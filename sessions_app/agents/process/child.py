"""The process in which replays run: `main` is told LIFELINE and SETUP.

It talks as `pipe` says. A request holds `run_id` (of the run to produce), `record` (text of a native record), `order`
and `course` (`core/fork/order.py`); a result `verdict`, `divergence`, `facts`, `error`, `stopped` and `record`, with
`live_calls`, which happened, and `refused_calls`, which the fence kept from happening. SETUP is JSON: `hidden`, places
that cannot be read in here.

It has no database, no secrets and no network, and serves one replay after the other.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from functools import partial
from typing import Any

from sessions_app.agents.loop import replaying
from sessions_app.agents.process.pipe import Pipe, to_nowhere
from sessions_app.agents.process.world_off import Fence, switch_off
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.observed import Replayed, Result

MEMORY_BYTES = 4 * 1024**3
CPU_SECONDS = 3600
_NAMED = 20
"""Refused attempts that are named; all are counted."""


def main() -> None:
    pipe = Pipe(lifeline=int(sys.argv[1]))
    hidden = json.loads(sys.argv[2])["hidden"]
    fence = switch_off(hidden, memory_bytes=MEMORY_BYTES, cpu_seconds=CPU_SECONDS)
    silence_stderr()
    pipe.say({"ready": True})
    for request in pipe.requests():
        pipe.say({"id": request["id"], "result": serve(request, fence, pipe, replaying.replay_requested)})


def serve(
    request: JsonObject, fence: Fence, pipe: Pipe, replay: Callable[..., Coroutine[Any, Any, Replayed]]
) -> JsonObject:
    """What came of one replay, as JSON."""

    def run(*given: Any) -> Replayed:
        return asyncio.run(replay(*given))

    fence.attempts.clear()
    return result_body(*attempt(request, pipe, run, lambda error: f"{type(error).__name__}: {error}"), fence)


def attempt(
    request: JsonObject, pipe: Pipe, replay: Callable[..., Replayed], in_words: Callable[[BaseException], str]
) -> Replayed:
    """Result and record of one replay. The loop is foreign code; whatever it raises, SystemExit too, is the outcome."""

    def on_progress(done: int, total: int) -> None:
        pipe.say({"id": request["id"], "progress": [done, total]})

    try:
        return replay(request, on_progress, partial(pipe.ask, request["id"]))
    except BaseException as error:
        return Result(verdict="could_not_run", error=in_words(error)), None


def result_body(result: Result, record: bytes | None, fence: Fence) -> JsonObject:
    return {
        "verdict": result.verdict,
        "divergence": asdict(result.divergence) if result.divergence else None,
        "facts": {**result.facts, **_isolation(fence)},
        "error": result.error,
        "stopped": result.stopped,
        "record": record.decode() if record else None,
        "live_calls": sum(result.facts.get("live_tools", {}).values()),
        "refused_calls": len(fence.attempts),
    }


def _isolation(fence: Fence) -> JsonObject:
    refused = {"refused": fence.attempts[:_NAMED]} if fence.attempts else {}
    return {"isolation": fence.words, "fence": fence.to_json(), **refused}


def silence_stderr() -> None:
    """Up to here it may say why it cannot start. What is replayed may print payloads, which no log may hold."""
    sys.stderr.flush()
    to_nowhere(2)
