"""Sixty agents of both frameworks whose tools run in a replay: unchanged they reproduce their run, one changed line of
one tool is found where it shows, and nothing goes out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from agents import Runner

from replay_recorder.replaying.observing import Replay, observe
from replay_recorder.replaying.own_agent import OwnAgent, is_openai_agents
from replay_recorder.replaying.recording import read_recording
from sessions_app.core.formats.native import parse_native
from sessions_app.core.replay.own_machine import judge_observed
from tests.agents.code_talking import replay_in_child
from tests.recorder import reaching_desks
from tests.recorder.local_server import Answer, LocalServer, local_server
from tests.recorder.openai_playing import one_record
from tests.recorder.reaching_desks import CLIENTS, DEPENDENCIES, REACHING_DESKS, SHOP

JSON = {"Content-Type": "application/json"}
ASKED = 4
"""Requests of one run."""


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """What it says changes each time."""
    with local_server() as server:
        monkeypatch.setenv(SHOP, server.url)
        server.answer("/stock", *(Answer(b'{"count": %d}' % count, headers=JSON) for count in (7, 6, 5)))
        server.answer(
            "/orders",
            Answer(b'{"wait": 3}', 429, headers=JSON),
            *(Answer(b'{"order": "O-%d"}' % number, 201, headers=JSON) for number in range(5)),
        )
        yield server


def make(name: str) -> tuple[Any, Any]:
    """The module reads the address of the shop when it is imported."""
    made = getattr(reaching_desks, name)
    made.__globals__["SHOP"] = os.environ[SHOP]
    agent, deps = made()
    return agent, deps


def recorded(name: str) -> dict[str, Any]:
    agent, deps = make(name)
    prompt = REACHING_DESKS[name].prompt
    if is_openai_agents(agent):
        return one_record(lambda: Runner.run(agent, prompt, context=deps), http=True)
    return one_record(lambda: agent.run(prompt, deps=deps), http=True)


Ended = tuple[str, int | None, str | None]


def on_own_machine(record: dict[str, Any], name: str) -> Ended:
    observed = observe(Replay(read_recording(record), OwnAgent(*make(name)), "run"))
    run = parse_native(json.dumps(record).encode())
    result, _ = judge_observed(run, parse_native(observed), tools="run", run_id="again")
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)


def test_there_are_thirty_of_each_framework():
    of_both = [name.startswith("pydantic_ai") for name in REACHING_DESKS]

    assert (len(of_both), sum(of_both)) == (60, 30)
    assert (len(CLIENTS), len(DEPENDENCIES)) == (6, 5)


@pytest.mark.parametrize("name", REACHING_DESKS)
def test_on_a_person_s_own_machine(name: str, shop: LocalServer):
    desk = REACHING_DESKS[name]
    assert desk.source.count(desk.line) == 1
    record = recorded(name)
    assert len(shop.received) == ASKED

    assert on_own_machine(record, name) == ("reproduced", None, None)
    assert on_own_machine(record, f"{name}_changed") == ("diverged", desk.step, desk.path)
    assert len(shop.received) == ASKED


FULL = os.environ.get("TRIAL_SIZE") == "full"
SEALED = [
    f"{framework}_{client}_{kept}"
    for framework in ("pydantic_ai", "openai_agents")
    for client, usual in zip(CLIENTS, cycle(DEPENDENCIES), strict=False)
    for kept in (DEPENDENCIES if FULL else [usual])
]
"""With `TRIAL_SIZE=full` all sixty, else each client and each way of keeping once; a process takes seconds."""


@pytest.mark.parametrize("name", SEALED)
def test_in_the_sealed_process_of_the_server(name: str, shop: LocalServer):
    desk, record = REACHING_DESKS[name], recorded(name)

    def replayed(target: str) -> dict[str, Any]:
        return replay_in_child(
            f"tests.recorder.reaching_desks:{target}",
            record,
            order={"tools": {"run": True}},
            environment={SHOP: shop.url},
        )

    same, changed = replayed(name), replayed(f"{name}_changed")

    assert (same["verdict"], same["divergence"], same["error"]) == ("reproduced", None, None)
    found = changed["divergence"]
    assert (changed["verdict"], found["step"], found["path"]) == ("diverged", desk.step, desk.path)
    assert [each["live_calls"] + each["refused_calls"] for each in (same, changed)] == [0, 0]
    assert len(shop.received) == ASKED
