"""The process around a team's agent: what it may do, how its end is told, what it knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sessions_app.agents.code_fence import CodeLimits
from tests.agents.code_talking import replay_in_child
from tests.agents.looking import recorded_record
from tests.agents.talking import example
from tests.agents.test_world_off import SECRETS

TIGHT = CodeLimits(memory_mb=700, seconds=4, output_mb=2)
STARTS_WITHIN = 30  # seconds, on a busy machine

CRASHES = {
    "segfault": "crashed: segmentation fault (signal 11)",
    "segfault_at_import": "crashed: segmentation fault (signal 11)",
    "endless": "crashed: took longer than 4 s",
    "endless_in_c": "crashed: took longer than 4 s",
    "busy": "crashed: took longer than 4 s",
    "memory": "crashed: memory limit 700 MB",
    "leaving": "crashed: sys.exit(3)",
    "leaving_at_import": "crashed: sys.exit(no key)",
    "leaving_at_once": "crashed: os._exit(3)",
    "printing": "crashed: more than 2 MB of output",
    "printing_to_stderr": "crashed: more than 2 MB of output",
    "forking": "crashed: reached for the world, which is off in a replay (os.fork)",
    "running_programs": "crashed: reached for the world, which is off in a replay (subprocess.Popen)",
    "connecting": "crashed: reached for the world, which is off in a replay (socket.getaddrinfo)",
    "writing": "crashed: reached for the world, which is off in a replay (open)",
    "raising_at_import": "crashed: RuntimeError: OPENAI_API_KEY is not set",
}


@pytest.mark.parametrize(("name", "words"), CRASHES.items())
def test_the_end_of_a_team_s_code_is_told_in_words(name: str, words: str):
    started = time.monotonic()

    result = replay_in_child(f"tests.agents.misbehaving:{name}", limits=TIGHT)

    assert (result["verdict"], result["error"]) == ("could_not_run", words)
    assert time.monotonic() - started < TIGHT.seconds + 5 + STARTS_WITHIN
    assert not Path("tests/agents/misbehaving.written").exists()


def test_nobody_answers_what_the_code_asks():
    result = replay_in_child("tests.agents.misbehaving:asking", limits=TIGHT)

    assert (result["verdict"], result["error"]) == ("could_not_run", "EOFError: EOF when reading a line")


def test_what_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "pydantic_ai.py").write_text("raise ImportError('no such library here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    result = replay_in_child("examples.registered_agents:order_desk")

    assert result["error"] == "crashed: could not start: ImportError: no such library here"


@pytest.mark.parametrize(
    ("run", "target", "verdict"),
    [
        ("cancel_bug", "order_desk", ("reproduced", None)),
        ("cancel_bug", "order_desk_fixed", ("diverged", 4)),
        ("run_xyz789", "v2_with_empty_check", ("diverged", 3)),
        ("charged_twice", "billing_desk", ("reproduced", None)),
    ],
)
def test_the_examples_reach_for_nothing(run: str, target: str, verdict: Any):
    result = replay_in_child(f"examples.registered_agents:{target}", example(run))

    assert (result["verdict"], (result["divergence"] or {}).get("step")) == verdict
    assert (result["live_calls"], result["error"], "refused" in result["facts"]) == (0, None, False)
    assert json.loads(result["record"])["run_id"] == "again"


# --- what it knows


def test_the_team_s_code_knows_no_secrets_of_ours(monkeypatch: pytest.MonkeyPatch):
    for name in SECRETS:
        monkeypatch.setenv(name, f"planted {name}")
    declared = {"OPENAI_API_KEY": "dummy", "FEATURE": "on"}

    seen = looked_around(environment=declared)

    assert not SECRETS & seen["environment"].keys()
    assert not [value for value in seen["environment"].values() if value.startswith("planted")]
    assert {name: seen["environment"][name] for name in declared} == declared
    assert seen["environment"]["REPLAY_RECORD"] == "off"


def test_it_may_write_in_a_folder_of_its_own_which_goes_with_it():
    seen = looked_around()

    assert seen["wrote"] == "kept"
    assert seen["too_much"] == "OSError"
    assert not Path(seen["environment"]["TMPDIR"]).exists()


def test_it_has_a_network_only_while_a_live_tool_runs():
    seen = looked_around()

    assert (seen["in_the_tool"], seen["in_the_check"]) == ("reached", "WorldIsOff")


WINDOW = """
import asyncio, contextvars, sys, tempfile
from pathlib import Path
from sessions_app.agents.code_fence import CodeLimits, fence_code, live_window

fence_code(CodeLimits(memory_mb=2048), Path(tempfile.mkdtemp()), is_live=True)

async def look_up():
    try:
        await asyncio.get_running_loop().getaddrinfo("localhost", 80)
    except Exception as error:
        return type(error).__name__
    return "reached"

async def main():
    with live_window():
        left_over = contextvars.copy_context()
        inside = await look_up()
    outside = await look_up()
    afterwards = await asyncio.create_task(look_up(), context=left_over)
    print(inside, outside, afterwards)

asyncio.run(main())
"""


def test_what_a_live_tool_leaves_behind_has_no_network():
    """The loop looks names up in threads of its own, while the tool runs."""
    told = subprocess.check_output([sys.executable, "-c", WINDOW], text=True)

    assert told.split() == ["reached", "WorldIsOff", "WorldIsOff"]


def test_what_ran_live_is_counted_with_what_was_refused():
    result = looking_around()

    assert result["facts"]["live_tools"] == {"look": 1}
    assert result["facts"]["refused"] == ["socket.bind"]
    assert result["live_calls"] == 2


def test_without_live_tools_the_kernel_keeps_the_network_away():
    result = replay_in_child("examples.registered_agents:order_desk")
    live = looking_around()

    if "namespace" in result["facts"]["isolation"]:
        assert live["facts"]["isolation"] == "audit hook"


def looked_around(**given: Any) -> dict[str, Any]:
    """What the live tool of `tests.agents.looking` tells of itself and of the check before it."""
    result = looking_around(**given)
    assert result["error"] is None, result["error"]
    found: dict[str, Any] = json.loads(result["record"])["steps"][1]["result"]
    return found


def looking_around(**given: Any) -> dict[str, Any]:
    order = {"tools": {"live": ["look"]}}
    return replay_in_child("tests.agents.looking:agent", recorded_record(), order=order, **given)


def test_the_environment_of_the_tests_has_something_to_hide():
    assert SECRETS & set(os.environ)
