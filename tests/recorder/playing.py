"""Plays scenarios in every way a run can be started, recorded by `install()`.

`python -m tests.recorder.playing FOLDER SCENARIO-WAY ...` writes one record for each; it runs beside any version of the
library.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import replay_recorder
from replay_recorder.writing.assembly import assemble
from tests.recorder.scenarios import SCENARIOS, Play, Scenario


async def _run(play: Play) -> Any:
    return (await play.agent.run(play.prompt, **play.arguments)).output


async def _stream(play: Play) -> Any:
    async with play.agent.run_stream(play.prompt, **play.arguments) as run:
        return await run.get_output()


async def _events(play: Play) -> Any:
    async with play.agent.run_stream_events(play.prompt, **play.arguments) as events:
        async for _ in events:
            pass


async def _iterate(play: Play) -> Any:
    async with play.agent.iter(play.prompt, **play.arguments) as run:
        async for _ in run:
            pass
    return run.result


WAYS: dict[str, Callable[[Play], Any]] = {
    "run": _run,
    "run_stream": _stream,
    "run_stream_events": _events,
    "iter": _iterate,
}


def recorded(play: Play, way: str = "run", **settings: Any) -> list[bytes]:
    """The records that one run leaves, oldest first. What the agent raises is part of the record."""
    return record_of(lambda: _played(WAYS[way](play)), **settings)


def record_of(work: Callable[[], Coroutine[Any, Any, None]], **settings: Any) -> list[bytes]:
    """The records that this work leaves."""
    with tempfile.TemporaryDirectory() as folder:
        replay_recorder.install(spool=folder, **settings)
        try:
            asyncio.run(work())
        finally:
            replay_recorder.uninstall()
        return [assemble(path.read_bytes()) for path in sorted(Path(folder, "ready").iterdir())]


async def _played(run: Any) -> None:
    try:
        await run
    except Exception:
        return


def last_record(scenario: Scenario, way: str) -> bytes:
    """What went before the run itself, such as an earlier turn, is made before recording begins."""
    return recorded(scenario.make(), way)[-1]


if __name__ == "__main__":
    scenarios = {str(scenario): scenario for scenario in SCENARIOS}
    for name in sys.argv[2:]:
        scenario, _, way = name.partition("-")
        Path(sys.argv[1], f"{name}.json").write_bytes(last_record(scenarios[scenario], way))
