"""Agents whose tools reach for something outside of the process or beside it: HTTP, a file, a database.

The address of their shop is in the environment, under `SHOP`.
"""

from __future__ import annotations

from tests.recorder.desks import OPENAI_AGENTS, PYDANTIC_AI, Desk

SHOP = "REACHING_DESK_SHOP"

_CLIENTS = {
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
_TOOLS = '''

async def sent(*request):
    answer = send(*request)
    return await answer if hasattr(answer, "__await__") else answer


async def stock(CONTEXTitem: str) -> TOLD:
    """How many there are; asked twice at one address, and the first is what counts."""
    first, second = await sent("GET", f"/stock?item={item}"), await sent("GET", f"/stock?item={item}")
    return WRITTEN({"item": item, "count": first[1]["count"], "left": second[1]["count"]})


async def order(CONTEXTitem: str, count: int) -> str:
    """Order some; a shop that is busy is asked once more."""
    status, said = await sent("POST", "/orders", {"item": item, "count": count})
    if status == 429:
        status, said = await sent("POST", "/orders", {"item": item, "count": count, "waited": said["wait"]})
    KEEPS
    return f"{said['order']} for {count} of {item}"

'''
_ANSWERS = """
        call("stock", "s1", item="lamp"),
        call("order", "o1", item="lamp", count=2),
        says("Ordered."),
"""


def _written(first: str, last: str, **words: str) -> str:
    tools = _TOOLS
    for name, word in words.items():
        tools = tools.replace(name, word)
    return f"{first}{tools}{last.replace('ANSWERS', _ANSWERS)}"


def _of_pydantic_ai(client: str, deps: str, made: str, keeps: str) -> Desk:
    first = f"{PYDANTIC_AI}import json\nimport os\n\nSHOP = os.environ[{SHOP!r}]\n{_CLIENTS[client]}\n{deps}"
    last = f"""
def make():
    agent = Agent(scripted(ANSWERS), tools=[stock, order])
    return agent, {made}
"""
    source = _written(first, last, CONTEXT="ctx: RunContext, ", TOLD="dict", WRITTEN="", KEEPS=keeps)
    return Desk(source, '"count": first[1]["count"]', '"count": second[1]["count"]', 2, "result.count", "Two lamps")


def _of_the_sdk(client: str, deps: str, made: str, keeps: str) -> Desk:
    first = f"{OPENAI_AGENTS}import os\n\nSHOP = os.environ[{SHOP!r}]\n{_CLIENTS[client]}\n{deps}"
    last = f"""
def make():
    tools = [function_tool(stock), function_tool(order)]
    return Agent(name="shop", model=scripted(ANSWERS), tools=tools), {made}
"""
    context = "ctx: RunContextWrapper, "
    source = _written(first, last, CONTEXT=context, TOLD="str", WRITTEN="json.dumps", KEEPS=keeps)
    return Desk(source, "for {count} of {item}", "of {item}: {count}", 5, "result", "Two lamps")


_BASKET = "@dataclass\nclass Basket:\n    items: list\n"
_COUNTER = "class Counter(BaseModel):\n    ordered: int = 0\n"
_LEDGER = """
import sqlite3


def ledger():
    rows = sqlite3.connect(":memory:", check_same_thread=False)
    rows.execute("create table orders (item text)")
    return rows

"""

_NOTES = '''
import tempfile
from pathlib import Path
from pydantic import BaseModel


class Desk(BaseModel):
    folder: str


def write(CONTEXT, text: str) -> str:
    """Write a note into the notebook."""
    with Path(ctx.DEPS.folder, "notes").open("a") as notes:
        notes.write(text)
    return Path(ctx.DEPS.folder, "notes").read_text()

'''
_TWO_NOTES = 'call("write", "w1", text="one, "), call("write", "w2", text="two"), says("Written.")'


def _with_notes(source: str) -> Desk:
    return Desk(source, "notes.write(text)", "notes.write(text.upper())", 2, "result", "Two notes")


REACHING_DESKS = {
    "httpx_asynchronously": _of_pydantic_ai("async_httpx", _BASKET, "Basket([])", "ctx.deps.items.append(item)"),
    "requests": _of_pydantic_ai("requests", "", "{}", "ctx.deps[item] = count"),
    "aiohttp": _of_pydantic_ai("aiohttp", _COUNTER, "Counter()", "ctx.deps.ordered += count"),
    "urllib": _of_pydantic_ai("urllib", "", "None", "pass"),
    "a_file": _with_notes(
        PYDANTIC_AI
        + _NOTES.replace("CONTEXT", "ctx: RunContext[Desk]").replace("DEPS", "deps")
        + f"""
def make():
    return Agent(scripted({_TWO_NOTES}), tools=[write]), Desk(folder=tempfile.mkdtemp())
"""
    ),
    "httpx_of_the_sdk": _of_the_sdk("httpx", _BASKET, "Basket([])", "ctx.context.items.append(item)"),
    "httpx2_of_the_sdk": _of_the_sdk("httpx2", "", "None", "pass"),
    "requests_of_the_sdk": _of_the_sdk("requests", "", "{}", "ctx.context[item] = count"),
    "aiohttp_of_the_sdk": _of_the_sdk(
        "aiohttp", "from pydantic import BaseModel\n" + _COUNTER, "Counter()", "ctx.context.ordered += count"
    ),
    "a_database_of_the_sdk": _of_the_sdk(
        "urllib", _LEDGER, "ledger()", 'ctx.context.execute("insert into orders values (?)", [item])'
    ),
    "a_file_of_the_sdk": _with_notes(
        OPENAI_AGENTS
        + _NOTES.replace("CONTEXT", "ctx: RunContextWrapper[Desk]").replace("DEPS", "context")
        + f"""
def make():
    agent = Agent(name="notes", model=scripted({_TWO_NOTES}), tools=[function_tool(write)])
    return agent, Desk(folder=tempfile.mkdtemp())
"""
    ),
}
