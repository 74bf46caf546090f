"""What recording costs an agent, as JSON: `.venv/bin/python -m benchmarks.recorder_overhead [STEPS …]`.

The same agent with ten tools runs bare, with hooks that do nothing, recorded, and with its whole history written at
each step, which is how traces are often taken. Its model is asked over HTTP with the OpenAI client, as a real agent's
is, and answered by a server in another process; `in_process` is the same with answers made up on the spot, which is
all framework and no client.

CPU seconds of the agent's process, the ways taken in turn, the median of several rounds; `overhead` is the share on
top of the bare agent. Bytes are those of the record.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

import replay_recorder
from replay_recorder.writing.assembly import assemble

SIZES = (10, 100, 300)
ROUNDS = {10: 15, 100: 7, 300: 3}
RESULT = {"docs": ["Refunds are possible within 30 days of delivery."] * 3, "count": 3}


# --- the agent and its model -------------------------------------------------------------------


def make_agent(model: Model[Any], **arguments: Any) -> Agent[None, str]:
    agent = Agent(model, instructions="You answer questions about orders.", **arguments)
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


class IdleHooks(AbstractCapability[Any]):
    """The recorder's hooks around a step, doing nothing: the library's own price of being watched."""

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return await handler(request_context)

    async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(args)

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(args)


def in_process_model(steps: int) -> Model[Any]:
    """A step is one answer with one call of a tool."""

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        number = len(messages) // 2
        if number >= steps:
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=[ToolCallPart(f"tool_{number % 10}", {"query": f"q{number}"}, f"call_{number}")])

    return FunctionModel(answer)


def http_model(steps: int) -> Model[Any]:
    """The same over the wire; the name of the model says how many steps there are."""
    provider = OpenAIProvider(base_url=os.environ["BENCHMARK_MODEL_URL"], api_key="none")
    return OpenAIChatModel(f"steps-{steps}", provider=provider)


class ChatCompletions(BaseHTTPRequestHandler):
    """Speaks as much of the protocol as the agent needs."""

    protocol_version = "HTTP/1.1"
    # Head and body in one packet: the client would wait for the second.
    wbufsize = -1

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(completion(asked)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        return None


def completion(asked: dict[str, Any]) -> dict[str, Any]:
    number, steps = sum(m["role"] == "tool" for m in asked["messages"]), int(asked["model"].split("-")[1])
    call = {"name": f"tool_{number % 10}", "arguments": json.dumps({"query": f"q{number}"})}
    calls = [{"id": f"call_{number}", "type": "function", "function": call}]
    goes_on = number < steps
    said = {"content": None, "tool_calls": calls} if goes_on else {"content": "Done."}
    choice = {
        "index": 0,
        "message": {"role": "assistant", **said},
        "finish_reason": "tool_calls" if goes_on else "stop",
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    facts = {"id": f"c{number}", "object": "chat.completion", "created": 1_760_000_000, "model": asked["model"]}
    return {**facts, "choices": [choice], "usage": usage}


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), ChatCompletions)
    print(server.server_port, flush=True)
    server.serve_forever()


@contextmanager
def model_server() -> Iterator[None]:
    """In a process of its own, so that its CPU is not counted."""
    command = [sys.executable, "-m", "benchmarks.recorder_overhead", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        os.environ["BENCHMARK_MODEL_URL"] = f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        try:
            yield
        finally:
            process.terminate()


# --- measuring ---------------------------------------------------------------------------------

MakeModel = Callable[[int], Model[Any]]


def cpu(steps: int, make_model: MakeModel = in_process_model, **arguments: Any) -> float:
    """CPU seconds of one run."""
    agent = make_agent(make_model(steps), **arguments)
    began = time.process_time()
    asyncio.run(agent.run("Go", usage_limits=UsageLimits(request_limit=None)))
    return time.process_time() - began


def bare(steps: int, folder: Path, make_model: MakeModel) -> tuple[float, int]:
    return cpu(steps, make_model), 0


def idle_hooks(steps: int, folder: Path, make_model: MakeModel) -> tuple[float, int]:
    return cpu(steps, make_model, capabilities=[IdleHooks()]), 0


def recorded(steps: int, folder: Path, make_model: MakeModel) -> tuple[float, int]:
    replay_recorder.install(spool=folder)
    try:
        seconds = cpu(steps, make_model)
    finally:
        replay_recorder.uninstall()
    (path,) = (folder / "ready").iterdir()
    size = len(assemble(path.read_bytes()))
    path.unlink()
    return seconds, size


def whole_history(steps: int, folder: Path, make_model: MakeModel) -> tuple[float, int]:
    path = folder / "history.jsonl"
    seconds = cpu(steps, make_model, capabilities=[WholeHistory(path)])
    size = path.stat().st_size
    path.unlink()
    return seconds, size


WAYS: dict[str, Callable[[int, Path, MakeModel], tuple[float, int]]] = {
    "bare": bare,
    "idle_hooks": idle_hooks,
    "recorded": recorded,
    "whole_history": whole_history,
}


def measure(steps: int, make_model: MakeModel) -> dict[str, Any]:
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS.get(steps, 5)):
            for name, way in WAYS.items():
                found[name].append(way(steps, Path(folder), make_model))
    seconds = {name: statistics.median(second for second, _ in rounds) for name, rounds in found.items()}
    return {
        "steps": steps,
        "cpu_ms_per_step": {name: round(second / steps * 1000, 3) for name, second in seconds.items()},
        "overhead": {name: round(second / seconds["bare"] - 1, 3) for name, second in seconds.items()},
        "bytes": {name: rounds[0][1] for name, rounds in found.items() if rounds[0][1]},
    }


def main() -> None:
    logging.disable(logging.WARNING)
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    with model_server():
        models: dict[str, MakeModel] = {"over_http": http_model, "in_process": in_process_model}
        for make_model in models.values():
            cpu(10, make_model)
        print(json.dumps({name: [measure(steps, make) for steps in sizes] for name, make in models.items()}, indent=2))


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
