"""Agents whose tools send HTTP, one for each client; the address of their shop is in the environment.

A module like a team's own: it is imported where the agent is recorded, and again in the sealed process.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import requests
from pydantic_ai import Agent

from tests.recorder.scenarios import Scripted, call, says

SHOP = "HTTP_DESK_SHOP"
Send = Callable[..., Any]
"""Sends method, path and JSON; gives status and text."""


def by_httpx(method: str, path: str, content: Any = None) -> tuple[int, str]:
    with httpx.Client(trust_env=False) as client:
        answer = client.request(method, address(path), json=content)
        return answer.status_code, answer.text


async def by_httpx_async(method: str, path: str, content: Any = None) -> tuple[int, str]:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.request(method, address(path), json=content)
        return answer.status_code, answer.text


def by_requests(method: str, path: str, content: Any = None) -> tuple[int, str]:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.request(method, address(path), json=content)
        return answer.status_code, answer.text


async def by_aiohttp(method: str, path: str, content: Any = None) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.request(method, address(path), json=content) as answer:
        return answer.status, await answer.text()


def by_urllib(method: str, path: str, content: Any = None) -> tuple[int, str]:
    body = None if content is None else json.dumps(content).encode()
    asked = urllib.request.Request(address(path), body, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as answer:
            content = answer.read()
            is_coded = answer.headers.get("Content-Encoding") == "gzip"
            return answer.status, (gzip.decompress(content) if is_coded else content).decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


SENDS: dict[str, Send] = {
    send.__name__.removeprefix("by_"): send for send in (by_httpx, by_httpx_async, by_requests, by_aiohttp, by_urllib)
}


def address(path: str) -> str:
    return os.environ[SHOP] + path


def script() -> list[Any]:
    return [
        says(call("stock", {"item": "lamp"}, "a"), call("stock", {"item": "desk"}, "b")),
        says(call("order", {"item": "lamp"}, "c")),
        says(call("note", {"text": "ordered"}, "d")),
        says("Done."),
    ]


def desk(send: Send, *answers: Any, stock_path: str = "/stock", keeps: str = "kept") -> Agent[None, str]:
    """1 model, 2 and 3 stock, 4 model, 5 order, 6 model, 7 note, 8 model; steps of HTTP come between."""
    agent: Agent[None, str] = Agent(Scripted(*answers), name="desk")

    async def sent(method: str, path: str, content: Any = None) -> tuple[int, str]:
        found = send(method, path, content)
        status, text = await found if hasattr(found, "__await__") else found
        return status, text

    @agent.tool_plain
    async def stock(item: str) -> dict[str, Any]:
        """Both calls ask at one address, and each asks twice."""
        first, second = await sent("GET", stock_path), await sent("GET", stock_path)
        return {"item": item, "first": json.loads(first[1]), "second": json.loads(second[1])}

    @agent.tool_plain
    async def order(item: str) -> str:
        """The shop is busy at first."""
        status, text = await sent("POST", "/orders?shop=1", {"item": item, "grüße": [1, 2.0]})
        if status == 429:
            busy = json.loads(text)["wait"]
            status, text = await sent("POST", "/orders?shop=1", {"item": item, "grüße": [1, 2.0]})
            return f"waited {busy}: {text}"
        return text

    @agent.tool_plain
    def note(text: str) -> str:
        """Memory and the scratch folder are free."""
        database = sqlite3.connect(":memory:")
        database.execute("create table notes (text)")
        database.execute("insert into notes values (?)", (text,))
        [(found,)] = database.execute("select text from notes").fetchall()
        database.close()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "note")
            file.write_text(found)
            return f"{keeps} {file.read_text()}"

    return agent


def httpx_desk() -> Agent[None, str]:
    return desk(by_httpx)


def httpx_async_desk() -> Agent[None, str]:
    return desk(by_httpx_async)


def requests_desk() -> Agent[None, str]:
    return desk(by_requests)


def aiohttp_desk() -> Agent[None, str]:
    return desk(by_aiohttp)


def urllib_desk() -> Agent[None, str]:
    return desk(by_urllib)


def elsewhere_desk() -> Agent[None, str]:
    """Asks at another address than then."""
    return desk(by_requests, stock_path="/stock/now")


def changed_desk() -> Agent[None, str]:
    return desk(by_aiohttp, keeps="changed")
