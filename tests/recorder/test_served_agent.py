"""An agent behind a web service: each request is a run of its own, many at once, in one process."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sessions_app.core.assembly.model_exchanges import with_conversation
from sessions_app.core.formats.native import parse_native
from tests.fake_provider import after_tools, always, calls, fake_provider, says
from tests.recorder import plain_loops
from tests.recorder.recordings import records_of, value
from tests.recorder.test_plain_loops import ANSWER, assert_reproduced, kinds

AT_ONCE = 8


def served(url: str) -> Starlette:
    """FastAPI calls these two the same way: it waits for an async function, and has others run in a thread."""
    awaited, blocking = plain_loops.awaited_chat(url), plain_loops.async_chat(url)

    async def ask(request: Request) -> PlainTextResponse:
        return PlainTextResponse(await awaited(request.query_params["q"]))

    def ask_in_thread(request: Request) -> PlainTextResponse:
        return PlainTextResponse(blocking(request.query_params["q"]))

    return Starlette(routes=[Route("/ask", ask), Route("/ask-in-thread", ask_in_thread)])


async def asked_at_once(url: str) -> list[str]:
    transport = httpx.ASGITransport(app=served(url))
    async with httpx.AsyncClient(transport=transport, base_url="http://agents", timeout=60) as client:
        paths = [f"/{('ask', 'ask-in-thread')[n % 2]}?q=Where+is+{n}?" for n in range(AT_ONCE)]
        return [answer.text for answer in await asyncio.gather(*map(client.get, paths))]


def test_each_request_to_a_service_is_a_run_that_replays():
    asks = calls("find_order", {"order_id": "ORD-5521"})
    answers: list[Any] = []
    with fake_provider(after_tools(always(asks), always(says(ANSWER)))) as provider:
        records = records_of(lambda: answers.extend(asyncio.run(asked_at_once(provider.url))))

    runs = [with_conversation(parse_native(record)) for record in records]
    assert answers == [ANSWER] * AT_ONCE
    assert sorted(str(value(run.input)) for run in runs) == [f"Where is {n}?" for n in range(AT_ONCE)]
    for run in runs:
        assert kinds(run) == ["model", "tool", "model"]
        assert_reproduced(run)
