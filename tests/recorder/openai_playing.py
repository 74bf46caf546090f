"""Agents of the OpenAI Agents SDK with scripted models, recorded by `install()`."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_trace_processors
from agents.models.interface import Model
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)

import replay_recorder
from replay_recorder.writing.assembly import assemble

# Nothing is uploaded from tests.
set_trace_processors([])
Record = dict[str, Any]
Play = Callable[[], Coroutine[Any, Any, Any]]


class Scripted(Model):
    """Answers one after the other, streamed or not. An exception in the script is raised."""

    model = "scripted-1"

    def __init__(self, *script: list[ResponseOutputItem] | Exception) -> None:
        self.script = list(script)

    def _next(self) -> list[ResponseOutputItem]:
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
        usage = Usage(requests=1, input_tokens=11, output_tokens=7, total_tokens=18)
        return ModelResponse(output=self._next(), usage=usage, response_id="resp_1")

    async def stream_response(self, *args: Any, **named: Any) -> AsyncIterator[Any]:
        output = self._next()
        yield ResponseTextDeltaEvent(
            type="response.output_text.delta",
            sequence_number=0,
            item_id="msg_1",
            output_index=0,
            content_index=0,
            delta="…",
            logprobs=[],
        )
        yield ResponseCompletedEvent(type="response.completed", sequence_number=1, response=_response(output))


def _response(output: list[ResponseOutputItem]) -> Response:
    return Response(
        id="resp_1",
        created_at=0,
        model="scripted-1-2026",
        object="response",
        output=output,
        status="completed",
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
        usage=ResponseUsage.model_validate(
            {
                "input_tokens": 11,
                "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
                "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 2},
                "total_tokens": 18,
            }
        ),
    )


def says(text: str) -> ResponseOutputItem:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", content=[content])


def calls(name: str, arguments: str, call_id: str) -> ResponseOutputItem:
    return ResponseFunctionToolCall(type="function_call", name=name, arguments=arguments, call_id=call_id)


def agent(*script: list[ResponseOutputItem] | Exception, **facts: Any) -> Agent[Any]:
    return Agent(**{"name": "Support", "instructions": "Be kind.", "model": Scripted(*script), **facts})


async def run(agent: Agent[Any], input: Any = "Where is it?", **options: Any) -> Any:
    return await Runner.run(agent, input, **options)


async def streamed(agent: Agent[Any], input: Any = "Where is it?", **options: Any) -> Any:
    result = Runner.run_streamed(agent, input, **options)
    async for _ in result.stream_events():
        pass
    return result


WAYS: dict[str, Callable[..., Coroutine[Any, Any, Any]]] = {"run": run, "run_streamed": streamed}


@function_tool
async def lookup(order: str) -> str:
    """Find one order."""
    return f"{order} has shipped"


def recorded(play: Play, **settings: Any) -> list[Record]:
    """The records that a piece of code leaves, oldest first. What it raises is in them."""
    with tempfile.TemporaryDirectory() as folder:
        replay_recorder.install(spool=folder, **settings)
        try:
            asyncio.run(_played(play))
        finally:
            replay_recorder.uninstall()
        return records_in(folder)


def records_in(folder: str) -> list[Record]:
    return [json.loads(assemble(path.read_bytes())) for path in sorted(Path(folder, "ready").iterdir())]


def one_record(play: Play, **settings: Any) -> Record:
    (record,) = recorded(play, **settings)
    return record


async def _played(play: Play) -> None:
    try:
        await play()
    except Exception:
        return


def steps_of(record: Record, kind: str) -> list[Record]:
    return [step for step in record["steps"] if step["kind"] == kind]


def bytes_of(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()
