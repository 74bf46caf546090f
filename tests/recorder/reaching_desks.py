"""Sixty agents whose tools reach for something: HTTP by one client each, and what they keep besides.

The address of their shop is in the environment, under `SHOP`. Each is a module of its own, as a team writes it:
`module_of` makes it, and `tests.recorder.reaching_desks:NAME` and `…:NAME_changed` are its agents.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import Any

from tests.recorder.desks import OPENAI_AGENTS, PYDANTIC_AI, Desk

SHOP = "REACHING_DESK_SHOP"

CLIENTS = {
    "httpx": """
import httpx


def send(method, path, content=None):
    with httpx.Client(trust_env=False) as client:
        answer = client.request(method, SHOP + path, json=content)
        return answer.status_code, answer.json()
""",
    "httpx2": """
import httpx2


async def send(method, path, content=None):
    async with httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.request(method, SHOP + path, json=content)
        return answer.status_code, answer.json()
""",
    "async_httpx": """
import httpx


async def send(method, path, content=None):
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.request(method, SHOP + path, json=content)
        return answer.status_code, answer.json()
""",
    "requests": """
import requests


def send(method, path, content=None):
    answer = requests.request(method, SHOP + path, json=content)
    return answer.status_code, answer.json()
""",
    "aiohttp": """
import aiohttp


async def send(method, path, content=None):
    async with aiohttp.ClientSession() as session, session.request(method, SHOP + path, json=content) as answer:
        return answer.status, await answer.json()
""",
    "urllib": """
import urllib.error
import urllib.request


def send(method, path, content=None):
    body = None if content is None else json.dumps(content).encode()
    asked = urllib.request.Request(SHOP + path, body, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
""",
}


@dataclass(frozen=True)
class Kept:
    """Dependencies of an agent, or its context: how they are made, what a tool does with them, and what it reads."""

    declared: str
    made: str
    keeps: str
    changed: str
    read: str


DEPENDENCIES = {
    "dataclass": Kept(
        "@dataclass\nclass Basket:\n    items: list\n",
        "Basket([])",
        "kept.items.append(item)",
        "kept.items.extend([item, item])",
        "len(kept.items)",
    ),
    "pydantic_model": Kept(
        "from pydantic import BaseModel\n\n\nclass Counter(BaseModel):\n    ordered: int = 0\n",
        "Counter()",
        "kept.ordered += count",
        "kept.ordered -= count",
        "kept.ordered",
    ),
    "dict": Kept("", "{}", "kept[item] = count", "kept[item.upper()] = count", "kept"),
    "database": Kept(
        """
import sqlite3


def ledger():
    rows = sqlite3.connect(":memory:", check_same_thread=False)
    rows.execute("create table orders (item text)")
    return rows

""",
        "ledger()",
        'kept.execute("insert into orders values (?)", [item])',
        'kept.execute("insert into orders values (?), (?)", [item, item])',
        'kept.execute("select count(*) from orders").fetchone()[0]',
    ),
    "file": Kept(
        "import tempfile\nfrom pathlib import Path\n",
        'Path(tempfile.mkdtemp(), "orders")',
        "kept.write_text(item)",
        "kept.write_text(item * 2)",
        "kept.read_text()",
    ),
}

_TOOLS = '''

async def sent(*request):
    answer = send(*request)
    return await answer if hasattr(answer, "__await__") else answer


async def stock(item: str) -> TOLD:
    """How many there are; asked twice at one address, and the first is what counts."""
    first, second = await sent("GET", f"/stock?item={item}"), await sent("GET", f"/stock?item={item}")
    return WRITTEN({"item": item, "count": first[1]["count"], "left": second[1]["count"]})


async def order(ctx: CONTEXT, item: str, count: int) -> str:
    """Order some; a shop that is busy is asked once more."""
    kept = ctx.KEPT
    status, said = await sent("POST", "/orders", {"item": item, "count": count})
    if status == 429:
        status, said = await sent("POST", "/orders", {"item": item, "count": count, "waited": said["wait"]})
    KEEPS
    read = READ
    return f"{said['order']} for {count} of {item}; kept: {read}"

'''
_ANSWERS = 'call("stock", "s1", item="lamp"), call("order", "o1", item="lamp", count=2), says("Ordered.")'
_MADE = {
    "pydantic_ai": f"""
def make():
    return Agent(scripted({_ANSWERS}), name="shop", tools=[stock, order]), MADE
""",
    "openai_agents": f"""
def make():
    tools = [function_tool(stock), function_tool(order)]
    return Agent(name="shop", model=scripted({_ANSWERS}), tools=tools), MADE
""",
}
_WORDS = {
    "pydantic_ai": {"TOLD": "dict", "WRITTEN": "", "CONTEXT": "RunContext", "KEPT": "deps"},
    "openai_agents": {"TOLD": "str", "WRITTEN": "json.dumps", "CONTEXT": "RunContextWrapper", "KEPT": "context"},
}
_FIRST = {"pydantic_ai": f"{PYDANTIC_AI}import json\n", "openai_agents": OPENAI_AGENTS}


def _desk(framework: str, client: str, kept: Kept, change: int) -> Desk:
    """The HTTP of a call but for its last exchange makes steps of its own: 2 stock, 3 HTTP, 5 order, 6 HTTP."""
    source = f"{_FIRST[framework]}import os\n\n{kept.declared}\nSHOP = os.environ[{SHOP!r}]\n{CLIENTS[client]}"
    source += _TOOLS + _MADE[framework]
    for word, said in {**_WORDS[framework], "KEEPS": kept.keeps, "READ": kept.read, "MADE": kept.made}.items():
        source = source.replace(word, said)
    line, changed, step, path = [
        (kept.keeps, kept.changed, 5, "result"),
        ('"count": first[1]["count"]', '"count": second[1]["count"]', 2, "result.count"),
        ("for {count} of {item}", "of {item}: {count}", 5, "result"),
    ][change]
    return Desk(source, line, changed, step, path, "Two lamps")


REACHING_DESKS = {
    f"{framework}_{client}_{name}": _desk(framework, client, kept, number % 3)
    for number, (framework, client, (name, kept)) in enumerate(product(_MADE, CLIENTS, DEPENDENCIES.items()))
}


def module_of(name: str, source: str) -> ModuleType:
    module = sys.modules.get(name)
    if module is None:
        module = sys.modules[name] = ModuleType(name)
        exec(source, module.__dict__)
    return module


def __getattr__(name: str) -> Callable[[], Any]:
    """`make` of the agent of this name."""
    desk = REACHING_DESKS.get(name.removesuffix("_changed"))
    if desk is None:
        raise AttributeError(name)
    source = desk.source.replace(desk.line, desk.changed) if name.endswith("_changed") else desk.source
    make: Callable[[], Any] = module_of(f"reaching_{name}", source).make
    return make
