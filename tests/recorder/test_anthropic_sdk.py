"""Loops over Anthropic's own client, recorded by `@record` alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from replay_recorder import record
from tests.recorder.local_server import Answer, local_server
from tests.recorder.plain_loops import find_order
from tests.recorder.test_plain_loops import (
    ANSWER,
    ASKED,
    MESSAGE,
    USE,
    assert_reproduced,
    kinds,
    of_json,
    only_record,
    value,
)

SCHEMA = {"type": "object"}
TOOL: dict[str, Any] = {"name": "find_order", "description": "What became of an order.", "input_schema": SCHEMA}
ORDER: dict[str, Any] = {"model": "claude-opus-4", "max_tokens": 900, "system": "You help.", "tools": [TOOL]}


def _tools_answers(content: list[Any]) -> list[dict[str, Any]]:
    uses = [block for block in content if block.type == "tool_use"]
    return [
        {"type": "tool_result", "tool_use_id": use.id, "content": json.dumps(find_order(**use.input))} for use in uses
    ]


def _text(content: list[Any]) -> str:
    return "".join(block.text for block in content)


def created(url: str) -> Callable[[str], str]:
    client = anthropic.Anthropic(base_url=url, api_key="sk-none")

    @record
    def support(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            content = client.messages.create(**ORDER, messages=messages).content
            if not (given := _tools_answers(content)):
                return _text(content)
            messages += [{"role": "assistant", "content": content}, {"role": "user", "content": given}]

    return support


def streamed(url: str) -> Callable[[str], str]:
    client = anthropic.Anthropic(base_url=url, api_key="sk-none")

    @record
    def support(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            with client.messages.stream(**ORDER, messages=messages) as stream:
                content = stream.get_final_message().content
            if not (given := _tools_answers(content)):
                return _text(content)
            messages += [{"role": "assistant", "content": content}, {"role": "user", "content": given}]

    return support


def awaited(url: str) -> Callable[[str], str]:
    @record
    async def support(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        async with anthropic.AsyncAnthropic(base_url=url, api_key="sk-none") as client:
            while True:
                content = (await client.messages.create(**ORDER, messages=messages)).content
                if not (given := _tools_answers(content)):
                    return _text(content)
                messages += [{"role": "assistant", "content": content}, {"role": "user", "content": given}]

    return lambda question: asyncio.run(support(question))


def awaited_stream(url: str) -> Callable[[str], str]:
    @record
    async def support(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        async with anthropic.AsyncAnthropic(base_url=url, api_key="sk-none") as client:
            while True:
                async with client.messages.stream(**ORDER, messages=messages) as stream:
                    content = (await stream.get_final_message()).content
                if not (given := _tools_answers(content)):
                    return _text(content)
                messages += [{"role": "assistant", "content": content}, {"role": "user", "content": given}]

    return lambda question: asyncio.run(support(question))


USAGE = {"usage": {"input_tokens": 9, "output_tokens": 5}}
ASKS = {**MESSAGE, **USAGE, "content": [{**USE, "input": {"order_id": "ORD-5521"}}], "stop_reason": "tool_use"}
SAYS = {**MESSAGE, **USAGE, "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn"}
ARGUMENTS = [{"type": "input_json_delta", "partial_json": part} for part in ('{"order_id": ', '"ORD-5521"}')]
WORDS = [{"type": "text_delta", "text": part} for part in ("It was ", "delivered.")]


def events(block: dict[str, Any], *deltas: dict[str, Any], stop_reason: str) -> Answer:
    """With the name of each event, which the client goes by."""
    said: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**MESSAGE, **USAGE, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    lines = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in said)
    return Answer(body=lines.encode(), headers={"Content-Type": "text/event-stream"})


@pytest.mark.parametrize("loop", [created, awaited])
def test_a_loop_over_the_client_replays(loop):
    with local_server() as server:
        server.answer("/v1/messages", of_json(ASKS), of_json(SAYS))
        run = only_record(lambda: loop(server.url)(ASKED))

    assert kinds(run) == ["model", "tool", "model"]
    assert value(run.output) == ANSWER
    assert_reproduced(run)


@pytest.mark.parametrize("loop", [streamed, awaited_stream])
def test_a_streamed_loop_over_the_client_replays(loop):
    with local_server() as server:
        asks = events({**USE, "input": {}}, *ARGUMENTS, stop_reason="tool_use")
        says = events({"type": "text", "text": ""}, *WORDS, stop_reason="end_turn")
        server.answer("/v1/messages", asks, says)
        run = only_record(lambda: loop(server.url)(ASKED))

    assert kinds(run) == ["model", "tool", "model"]
    assert value(run.output) == ANSWER
    assert_reproduced(run)
