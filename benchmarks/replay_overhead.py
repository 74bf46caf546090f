"""What a recording replay costs, as JSON: `.venv/bin/python -m benchmarks.replay_overhead [STEPS …]`.

An agent with ten tools runs bare, its answers made up in the process, and the recording of the same run is replayed:
parsed, put through the library's loop with each request compared, and the produced run written. CPU seconds, the two
taken in turn, the median of several rounds; `over_bare` is the replay's share of the bare run, the median of pairs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import replay_recorder
from benchmarks.recorder_overhead import cpu
from replay_recorder.writing.assembly import assemble
from sessions_app.agents.loop.replaying import replay

SIZES = (10, 50, 100)
ROUNDS = {10: 30, 50: 15, 100: 9}


def record_of(steps: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        replay_recorder.install(spool=Path(folder))
        try:
            cpu(steps)
        finally:
            replay_recorder.uninstall()
        (path,) = (Path(folder) / "ready").iterdir()
        return assemble(path.read_bytes())


def replayed(record: bytes) -> float:
    """CPU seconds of one replay."""
    began = time.process_time()
    result, _ = asyncio.run(replay(record, "replayed", lambda done, total: None))
    ended = time.process_time()
    assert result.verdict == "reproduced", result
    return ended - began


def measure(steps: int) -> dict[str, Any]:
    record = record_of(steps)
    pairs = [(cpu(steps), replayed(record)) for _ in range(ROUNDS.get(steps, 5))]
    bare, ours = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
    return {
        "steps": steps,
        "cpu_ms_per_step": {"bare": round(bare / steps * 1000, 3), "replay": round(ours / steps * 1000, 3)},
        "over_bare": round(statistics.median(ours / bare for bare, ours in pairs), 2),
    }


def main() -> None:
    logging.disable(logging.WARNING)
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    measure(10)
    print(json.dumps([measure(steps) for steps in sizes], indent=2))


if __name__ == "__main__":
    main()
