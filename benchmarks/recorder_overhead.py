"""What recording costs an agent, as JSON: `.venv/bin/python -m benchmarks.recorder_overhead`.

The same scripted agent with ten tools runs bare, recorded, and with its whole history written at each step, which is
how traces are often taken. CPU seconds of the process, the ways taken in turn, the median of several rounds; `overhead`
is the share on top of the bare agent. Bytes are those of the record.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

import replay_recorder
from replay_recorder.assembly import assemble

SIZES = (10, 100, 300)
ROUNDS = {10: 15, 100: 9, 300: 3}
RESULT = {"docs": ["Refunds are possible within 30 days of delivery."] * 3, "count": 3}


def make_agent(steps: int, **arguments: Any) -> Agent[None, str]:
    """A step is one answer of the model with one call of a tool."""

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        number = len(messages) // 2
        if number >= steps:
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=[ToolCallPart(f"tool_{number % 10}", {"query": f"q{number}"}, f"call_{number}")])

    agent = Agent(FunctionModel(answer), instructions="You answer questions about orders.", **arguments)
    for number in range(10):
        agent.tool_plain(name=f"tool_{number}")(_tool)
    return agent


def _tool(query: str) -> dict[str, Any]:
    """Search the documents for a query and return what was found."""
    return RESULT


class WholeHistory(AbstractCapability[Any]):
    """Writes all messages at each step, for comparison."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        response = await handler(request_context)
        self._file.write(ModelMessagesTypeAdapter.dump_json([*ctx.messages, response]) + b"\n")
        return response


def cpu(steps: int, **arguments: Any) -> float:
    """CPU seconds of one run."""
    agent = make_agent(steps, **arguments)
    began = time.process_time()
    asyncio.run(agent.run("Go", usage_limits=UsageLimits(request_limit=None)))
    return time.process_time() - began


def bare(steps: int, folder: Path) -> tuple[float, int]:
    return cpu(steps), 0


def recorded(steps: int, folder: Path) -> tuple[float, int]:
    replay_recorder.install(spool=folder)
    try:
        seconds = cpu(steps)
    finally:
        replay_recorder.uninstall()
    (path,) = (folder / "ready").iterdir()
    size = len(assemble(path.read_bytes()))
    path.unlink()
    return seconds, size


def whole_history(steps: int, folder: Path) -> tuple[float, int]:
    path = folder / "history.jsonl"
    seconds = cpu(steps, capabilities=[WholeHistory(path)])
    size = path.stat().st_size
    path.unlink()
    return seconds, size


WAYS: dict[str, Callable[[int, Path], tuple[float, int]]] = {
    "bare": bare,
    "recorded": recorded,
    "whole_history": whole_history,
}


def measure(steps: int) -> dict[str, Any]:
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS[steps]):
            for name, way in WAYS.items():
                found[name].append(way(steps, Path(folder)))
    seconds = {name: statistics.median(second for second, _ in rounds) for name, rounds in found.items()}
    return {
        "steps": steps,
        "cpu_ms_per_step": {name: round(second / steps * 1000, 3) for name, second in seconds.items()},
        "overhead": {name: round(second / seconds["bare"] - 1, 3) for name, second in seconds.items()},
        "bytes": {name: rounds[0][1] for name, rounds in found.items() if name != "bare"},
    }


def main() -> None:
    logging.disable(logging.WARNING)
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    cpu(10)
    print(json.dumps([measure(steps) for steps in sizes], indent=2))


if __name__ == "__main__":
    main()
