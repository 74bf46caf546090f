"""HTTP clients that are first imported after `install`, by the code of a step: each in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replay_recorder.writing.assembly import assemble
from tests.recorder.local_server import Answer, LocalServer, local_server

ROOT = Path(__file__).parents[2]
CLIENTS = ("httpx", "requests", "urllib3", "aiohttp")

PRELUDE = """
import asyncio, json, sys
import replay_recorder

folder, url, client = sys.argv[1:]
url += "/price"
before = list(sys.meta_path)

def by_httpx():
    import httpx
    return httpx.get(url, trust_env=False).text

def by_requests():
    import requests
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url).text

def by_urllib3():
    import urllib3
    return urllib3.PoolManager(retries=False).request("GET", url).data.decode()

def by_aiohttp():
    async def ask():
        import aiohttp
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.text()

    return asyncio.run(ask())

fetch = globals()["by_" + client]

def is_teed():
    import importlib
    module = importlib.import_module("urllib3" if client == "requests" else client)
    sends = {
        "httpx": lambda: module.HTTPTransport.handle_request,
        "aiohttp": lambda: module.ClientSession._request,
    }.get(client, lambda: module.HTTPConnectionPool._make_request)()
    return "replay_recorder" in sends.__code__.co_filename

def step():
    from replay_recorder.context import placed
    from replay_recorder.raw_http.tee import http_fields

    run = replay_recorder.active().begin("r-1")
    index = run.begin("tool", tool_name="price")
    with placed(run, index):
        answer = fetch()
    run.end(index, result=answer, **http_fields(run, index))
    replay_recorder.active().end(run, "ok")
    return answer

def says(**facts):
    print(json.dumps(facts))

assert client not in sys.modules
"""

STEP = """
replay_recorder.install(spool=folder, http=%s)
assert client not in sys.modules
says(answer=step(), is_teed=is_teed())
"""

AGENT = """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

replay_recorder.install(spool=folder, http=True)
agent = Agent(TestModel(), tools=[fetch])
assert client not in sys.modules
agent.run_sync("What does it cost?")
says(is_teed=is_teed())
"""

UNINSTALLED = """
replay_recorder.install(spool=folder, http=True)
watched = sys.meta_path != before
replay_recorder.uninstall()
says(watched=watched, left=sys.meta_path != before, answer=fetch(), is_teed=is_teed())
"""

AGAIN = """
replay_recorder.install(spool=folder, http=True)
replay_recorder.uninstall()
fetch()
replay_recorder.install(spool=folder, http=True)
says(answer=step(), is_teed=is_teed())
"""


@pytest.fixture
def server():
    with local_server() as server:
        server.answer("/price", Answer(b'{"price": 19}'))
        yield server


def run(program: str, client: str, server: LocalServer, folder: Path) -> dict[str, Any]:
    pytest.importorskip(client, reason=f"NOT TESTED WITH {client.upper()}: it is not installed")
    command = [sys.executable, "-c", PRELUDE + program, str(folder), server.url, client]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def recorded(folder: Path) -> list[tuple[str, int, str]]:
    """The HTTP of the run's tools: address, status and body."""
    (path,) = (folder / "ready").iterdir()
    steps = json.loads(assemble(path.read_bytes()))["steps"]
    exchanges = [step["http"] for step in steps if step["kind"] == "tool" and "http" in step]
    return [(http["url"], http["status"], http["response_body"]) for http in exchanges]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_first_request_of_a_client_that_a_step_imports_is_recorded(client, server, tmp_path):
    said = run(STEP % True, client, server, tmp_path)

    assert said == {"answer": '{"price": 19}', "is_teed": True}
    assert len(recorded(tmp_path)) == 1


@pytest.mark.parametrize("client", ["requests", "urllib3", "aiohttp"])
def test_it_is_recorded_in_the_body_of_an_agents_tool(client, server, tmp_path):
    said = run(AGENT, client, server, tmp_path)

    assert said == {"is_teed": True}
    assert len(recorded(tmp_path)) == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_without_the_setting_a_client_that_is_imported_later_stays_as_it_is(client, server, tmp_path):
    said = run(STEP % False, client, server, tmp_path)

    assert said == {"answer": '{"price": 19}', "is_teed": False}
    assert recorded(tmp_path) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_leaves_what_is_imported_afterwards_as_it_is(client, server, tmp_path):
    said = run(UNINSTALLED, client, server, tmp_path)

    assert said == {"watched": True, "left": False, "answer": '{"price": 19}', "is_teed": False}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_was_imported_between_two_recorders_is_recorded(client, server, tmp_path):
    said = run(AGAIN, client, server, tmp_path)

    assert said == {"answer": '{"price": 19}', "is_teed": True}
    assert len(recorded(tmp_path)) == 1
