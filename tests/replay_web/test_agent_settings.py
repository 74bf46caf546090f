"""What the environment says of the team's own agents and of who runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from replay_web.management.commands import runner
from replay_web.settings import base, env
from replay_web.supervisor.home import Home
from replay_web.supervisor.up import shared_settings
from sessions_app.agents.own_code.registry import load_agent


def test_a_fresh_installation_has_agents_that_are_there():
    names = {name: load_agent(target).agent.name for name, target in base.REPLAY_AGENTS.items()}

    assert {name: names[name] for name in ("order_desk", "order_desk_fixed", "v2_with_empty_check")} == {
        "order_desk": "order_desk",
        "order_desk_fixed": "order_desk",
        "v2_with_empty_check": "docs-assistant",
    }


def test_agents_are_read(monkeypatch):
    monkeypatch.setenv("AGENTS", "docs_bot=shop.bots:docs, desk=shop.bots:make_desk")

    assert env.agents("AGENTS", "x=y:z") == {"docs_bot": "shop.bots:docs", "desk": "shop.bots:make_desk"}


@pytest.mark.parametrize("value", ["docs_bot", "docs_bot=shop", "a=b:c, a=d:e", "a=b:c()"])
def test_a_bad_registration_stops_the_start_and_is_named(monkeypatch, value):
    monkeypatch.setenv("AGENTS", value)

    with pytest.raises(ImproperlyConfigured, match=f"AGENTS: .*{re.escape(value[-3:-1])}|AGENTS: 'a' is registered"):
        env.agents("AGENTS", "x=y:z")


def test_variables_are_passed_on_by_name_or_with_a_value(monkeypatch):
    monkeypatch.setenv("FEATURE", "on")
    monkeypatch.setenv("PASSED", "OPENAI_API_KEY=dummy=1, FEATURE, UNSET, EMPTY=")

    assert env.passed_on("PASSED") == {"OPENAI_API_KEY": "dummy=1", "FEATURE": "on", "UNSET": "", "EMPTY": ""}


@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL", "REDIS_URL_FILE", "REPLAY_MODEL_KEY"])
def test_a_secret_of_the_server_is_not_passed_on(monkeypatch, name):
    monkeypatch.setenv("PASSED", f"FEATURE=1, {name}")

    with pytest.raises(ImproperlyConfigured, match=f"PASSED: {name} is a secret of this server"):
        env.passed_on("PASSED")


# --- runners


def test_a_runner_is_a_worker_for_code_replays_alone(monkeypatch):
    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(runner.os, "execve", lambda program, command, found: started.append((command, found)))

    call_command("runner", "--concurrency", "3")

    (command, environment) = started[0]
    assert command[1:] == ["-m", "replay_web.worker"]
    assert (environment["WORKER_QUEUES"], environment["WORKER_THREADS"]) == ("code", "3")


def test_a_runner_says_first_which_agents_it_can_load(monkeypatch, settings, capfdbinary):
    settings.REPLAY_AGENTS = {"desk": "sessions_app.examples.agents:order_desk", "gone": "examples.nowhere:desk"}
    written: list[bytes] = []
    monkeypatch.setattr(runner.os, "execve", lambda *_: written.append(capfdbinary.readouterr().out))
    with open(1, "w", closefd=False) as buffered:
        call_command("runner", stdout=buffered)

    [before] = written
    assert b"  ok      desk=sessions_app.examples.agents:order_desk\n" in before
    assert b"  PROBLEM gone=examples.nowhere:desk: could not be loaded: there is no module 'examples.nowhere'" in before


def test_a_runner_without_threads_is_refused():
    with pytest.raises(CommandError, match="--concurrency has to be at least 1"):
        call_command("runner", "--concurrency", "0")


@pytest.mark.parametrize(
    ("queues", "served"), [(None, ["replays", "code"]), ("code", ["code"]), ("replays", ["replays"])]
)
def test_a_worker_serves_the_queues_that_it_is_told(tmp_path: Path, queues: str | None, served: list[str]):
    environment = {
        "PATH": os.environ["PATH"],
        "SECRET_KEY": "x",
        "REPLAY_HOME": str(tmp_path),
        **({} if queues is None else {"WORKER_QUEUES": queues}),
    }
    program = """
from replay_web import worker
found = []
class Worker:
    exitcode = 0
    def __init__(self, **given): found.append(given)
    def start(self): pass
worker.app.Worker = Worker
worker.main()
print(found[0]["queues"])
"""

    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

    assert (done.stdout.strip(), done.stderr) == (str(served), "")


# --- commands beside an instance that runs


def commands_agents(home: Path, **environment: str) -> dict[str, str]:
    """Those that a command on this home knows, without any in its own environment."""
    agents: dict[str, str] = known_to_commands(home, "REPLAY_AGENTS", **environment)["REPLAY_AGENTS"]
    return agents


def known_to_commands(home: Path, *names: str, **environment: str) -> dict[str, Any]:
    known = f"{{name: getattr(base, name) for name in {names}}}"
    program = f"from replay_web.settings import base\nimport json\nprint(json.dumps({known}))"
    found = {"PATH": os.environ["PATH"], "SECRET_KEY": "x", "REPLAY_HOME": str(home), **environment}
    done = subprocess.run([sys.executable, "-c", program], env=found, capture_output=True, text=True, check=True)
    settings: dict[str, Any] = json.loads(done.stdout)
    return settings


def test_a_command_knows_the_agents_that_up_was_started_with(tmp_path: Path):
    """Control: without an instance, with one that was given none, and with agents of its own, it has others."""
    home = Home(tmp_path)
    home.prepare()
    alone = commands_agents(tmp_path)
    home.remember(shared_settings={"REPLAY_AGENTS": "desk=shop.agents:desk"})

    assert commands_agents(tmp_path) == {"desk": "shop.agents:desk"}
    assert commands_agents(tmp_path, REPLAY_AGENTS="own=shop.agents:own") == {"own": "shop.agents:own"}

    home.remember(shared_settings={})
    assert commands_agents(tmp_path) == alone
    assert "order_desk" in alone


LIVE = {
    "REPLAY_MODEL_ENDPOINT": "http://127.0.0.1:9/v1",
    "REPLAY_MODEL_NAME": "qwen3",
    "REPLAY_MODEL_ALLOW_PRIVATE": "1",
}
KNOWN = {**LIVE, "REPLAY_MODEL_ALLOW_PRIVATE": True}


def test_a_command_knows_the_live_model_that_up_was_started_with_and_not_its_key(tmp_path: Path, monkeypatch):
    """Control: beside an instance without one it knows none."""
    home = Home(tmp_path)
    home.prepare()
    home.remember(shared_settings=shared_settings())
    without = known_to_commands(tmp_path, *LIVE)
    for name, value in {**LIVE, "REPLAY_MODEL_KEY": "sk-of-the-server"}.items():
        monkeypatch.setenv(name, value)
    home.remember(shared_settings=shared_settings())

    assert known_to_commands(tmp_path, *LIVE) == KNOWN
    assert known_to_commands(tmp_path, *LIVE, REPLAY_MODEL_NAME="other") == {**KNOWN, "REPLAY_MODEL_NAME": "other"}
    assert without == {"REPLAY_MODEL_ENDPOINT": "", "REPLAY_MODEL_NAME": "", "REPLAY_MODEL_ALLOW_PRIVATE": False}
    assert "sk-of-the-server" not in "".join(each.read_text() for each in tmp_path.rglob("up.json"))
