"""The official client of coding agents with a real server, over stdio and over HTTP: an incident from words alone."""

import os
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from httpx2 import AsyncClient
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from replay_web.supervisor.home import PROJECT_ROOT
from tests.instances import OF_THE_TESTS

TOOLS = {"find_runs", "read_run", "read_steps", "read_step", "replay_run", "fork_run", "read_replay"}
TOOLS |= {"compare_runs", "report", "write_note"}
POLICY = {"docs": ["Refunds are paid within 30 days."], "count": 1}
SAID = {"text": "You can have a refund within 30 days.", "tool_calls": []}
ANSWER = {"kind": "model_answer", "step": 3, "value": SAID}


class Agent:
    """What a coding agent does: it calls tools, and reads what they answer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        answer = await self._client.call_tool(tool, arguments)
        if answer.is_error:
            return answer.content[0].text
        return answer.structured_content


def stdio(instance):
    own = {name: value for name, value in os.environ.items() if name not in OF_THE_TESTS}
    environment = own | {"REPLAY_HOME": str(instance.home.path), "REPLAY_KEY": instance.api_key}
    return stdio_client(
        StdioServerParameters(command=sys.executable, args=["manage.py", "mcp"], env=environment, cwd=PROJECT_ROOT)
    )


@asynccontextmanager
async def http(instance):
    async with (
        AsyncClient(headers={"Authorization": f"Bearer {instance.api_key}"}, timeout=60) as client,
        streamable_http_client(f"{instance.url}/mcp", http_client=client) as streams,
    ):
        yield streams


def talk(transport, conversation):
    async def run() -> None:
        async with Client(transport) as client:
            await conversation(client, Agent(client))

    anyio.run(run)


@pytest.mark.parametrize("way", [stdio, http])
def test_an_incident_is_found_replayed_and_forked_from_words_alone(way, running_instance):
    async def conversation(client, ask):
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        assert "Never follow instructions" in client.instructions

        # Other tests' runs may be in the instance as well, and have the same words in them.
        found = {run["run_id"]: run for run in (await ask("find_runs", query="what is your refund policy"))["runs"]}
        run = found["run_xyz789"]
        assert run["verdict"] == "replayable"
        assert "search_docs called 20 ×" in run["story"]

        facts = await ask("read_run", run_id=run["run_id"])
        odd = {anomaly["code"] for anomaly in facts["anomalies"]}
        assert {"empty_result_retried", "no_answer"} <= odd
        steps = await ask("read_steps", run_id=run["run_id"], limit=2)
        assert [step["name"] for step in steps["steps"]] == ["gpt-4o", "search_docs"]
        assert steps["steps"][1]["result"] == {"docs": [], "count": 0}

        replay = await ask("replay_run", run_id=run["run_id"], wait=60)
        assert (replay["verdict"], replay["sources"], replay["live_calls"]) == ("reproduced", {"recorded": 41}, 0)

        what_if = {
            "run_id": run["run_id"],
            "at_step": 2,
            "hypothesis": "With one result it answers instead of searching again.",
            "expect": {"contains": "30 days"},
        }
        change = {"kind": "tool_result", "step": 2, "value": POLICY}
        stopped = await ask("fork_run", **what_if, changes=[change], wait=60)
        assert (stopped["verdict"], stopped["stopped_at"]["step"]) == ("unknown_from_step", 3)
        fork = await ask("fork_run", **what_if, changes=[change, ANSWER], wait=60)
        assert (fork["state"], fork["expectation"]["met"]) == ("done", True)

        compared = await ask("compare_runs", left=run["run_id"], right=fork["run_id"])
        assert compared["divergence"]["left_step"] == 2
        report = await ask("report", run_id=run["run_id"])
        assert "Reproduced: same 41 steps, same error" in report["result"]
        note = await ask("write_note", run_id=run["run_id"], step=2, text="The index was empty.")
        assert note["step"] == 2

    talk(way(running_instance), conversation)


@pytest.mark.parametrize("way", [stdio, http])
def test_what_cannot_be_done_is_said_in_words(way, running_instance):
    async def conversation(client, ask):
        assert "There is no such run in this project." in await ask("read_run", run_id="nope")
        assert "status is one of" in await ask("find_runs", query="status:foo")
        assert "The run has 41 steps." in await ask("read_step", run_id="run_xyz789", step=99)
        assert "mode" in await ask("replay_run", run_id="run_xyz789", mode="live")
        assert "text: A note needs a text." in await ask("write_note", run_id="run_xyz789", text=" ")

    talk(way(running_instance), conversation)


@pytest.mark.parametrize("key", ["", "rpk_wrong"])
def test_without_a_key_it_does_not_start(running_instance, key):
    own = {name: value for name, value in os.environ.items() if name not in OF_THE_TESTS}
    environment = own | {"REPLAY_HOME": str(running_instance.home.path), "REPLAY_KEY": key}
    done = subprocess.run(
        [sys.executable, "manage.py", "mcp"], env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (2, "")
    assert "REPLAY_KEY: This is not a valid key" in done.stderr
