"""The process around a team's agent: what it may do, how its end is told, what it knows."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sessions_app.agents.process.code_fence import CodeLimits, stays_home
from sessions_app.agents.process.code_sandbox import CodeChild
from tests.agents.code_talking import replay_in_child
from tests.agents.looking import recorded_record
from tests.agents.talking import example
from tests.agents.test_world_off import SECRETS
from tests.agents.unsealed_child import UnsealedChild

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
    "forking": "crashed: tried to leave the isolated replay (os.fork)",
    "running_programs": "crashed: tried to leave the isolated replay (subprocess.Popen)",
    "connecting": "crashed: tried to leave the isolated replay (socket.getaddrinfo)",
    "writing": "crashed: tried to leave the isolated replay (open)",
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


class UnknownChild(CodeChild):
    module = "tests.agents.no_such_module"


def test_what_cannot_start_says_why():
    result = replay_in_child("sessions_app.examples.agents:order_desk", child_type=UnknownChild)

    assert result["error"] == (
        "crashed: could not start: ModuleNotFoundError: No module named 'tests.agents.no_such_module'"
    )


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
    result = replay_in_child(f"sessions_app.examples.agents:{target}", example(run))

    assert (result["verdict"], (result["divergence"] or {}).get("step")) == verdict
    assert (result["live_calls"], result["refused_calls"], result["error"]) == (0, 0, None)
    assert json.loads(result["record"])["run_id"] == "again"


# --- what it knows


def test_the_team_s_code_knows_no_secrets_of_ours(monkeypatch: pytest.MonkeyPatch):
    for name in SECRETS:
        monkeypatch.setenv(name, f"planted {name}")
    declared = {"OPENAI_API_KEY": "dummy", "FEATURE": "on"}

    seen = told_by_code(looking_around(environment=declared))

    assert not SECRETS & seen["environment"].keys()
    assert not [value for value in seen["environment"].values() if value.startswith("planted")]
    assert {name: seen["environment"][name] for name in declared} == declared
    assert seen["environment"]["REPLAY_RECORD"] == "off"


def test_it_may_write_in_a_folder_of_its_own_which_goes_with_it(looked: dict[str, Any]):
    seen = told_by_code(looked)

    assert seen["wrote"] == "kept"
    assert seen["too_much"] == "OSError"
    assert not Path(seen["environment"]["TMPDIR"]).exists()


def test_a_live_tool_alone_has_a_network_and_a_process_of_its_own(looked: dict[str, Any]):
    of_code, of_tool = told_by_code(looked), told_by_tool(looked)

    assert (of_tool["in_the_tool"], of_code["in_the_check"]) == ("reached", "WorldIsOff")
    assert of_tool["checked"] is False, "checks run in the process without a network, and nowhere else"


RUNS = {"tools": {"run": True}}


@pytest.mark.parametrize(
    ("target", "ends"),
    [("order_desk", ("reproduced", None, None)), ("order_desk_repaired", ("diverged", 4, "result"))],
)
def test_tools_run_in_the_sealed_process(target: str, ends: Any):
    result = replay_in_child(f"sessions_app.examples.agents:{target}", order=RUNS)

    found = result["divergence"] or {}
    assert (result["verdict"], found.get("step"), found.get("path")) == ends
    assert (result["live_calls"], result["refused_calls"]) == (0, 0)
    assert result["facts"]["sources"]["own_code"] == 2


def test_the_same_repair_does_not_show_where_the_tools_are_frozen():
    assert replay_in_child("sessions_app.examples.agents:order_desk_repaired")["verdict"] == "reproduced"


def test_tools_do_not_run_where_the_kernel_keeps_nothing_out():
    result = replay_in_child("sessions_app.examples.agents:order_desk", order=RUNS, child_type=UnsealedChild)

    assert result["verdict"] == "could_not_run"
    assert result["error"].startswith("Tools run only where the kernel enforces isolation. This machine has: ")


def test_what_ran_live_and_what_was_refused_are_counted_apart(looked: dict[str, Any]):
    assert looked["facts"]["live_tools"] == {"look": 1}
    assert looked["facts"]["refused"] == ["socket.bind"]
    assert (looked["live_calls"], looked["refused_calls"]) == (1, 1)


def test_a_live_tool_leaves_the_fence_of_the_agent_as_it_is(looked: dict[str, Any]):
    frozen = replay_in_child("sessions_app.examples.agents:order_desk")

    assert looked["facts"]["fence"] == frozen["facts"]["fence"]
    assert "tool_fence" not in frozen["facts"]
    assert "network" not in looked["facts"]["tool_fence"]["held"]


def test_a_live_tool_that_was_not_allowed_does_not_run_whatever_the_process_asks_for():
    child = CodeChild("tests.agents.looking:agent", TIGHT, {}, live=["look"])
    try:
        reply = child.run_live_tool({"what": "live_tool", "tool": "refund", "name": "look"})
    finally:
        child.end()

    assert (reply, child.live_calls) == ({"cannot": "refund was not allowed for this replay."}, 0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("segfault_in_a_tool", "crashed: live tool look: segmentation fault (signal 11)"),
        ("leaving_in_a_tool", "crashed: sys.exit(3)"),
        ("writing_in_a_tool", "crashed: tried to leave the isolated replay (open)"),
        ("memory_in_a_tool", "crashed: memory limit 700 MB"),
    ],
)
def test_the_end_of_a_live_tool_is_told_in_words(name: str, words: str):
    result = replay_in_child(f"tests.agents.misbehaving:{name}", recorded_record(), order=LIVE, limits=TIGHT)

    assert (result["verdict"], result["error"]) == ("could_not_run", words)
    assert not Path("tests/agents/misbehaving.written").exists()


LIVE = {"tools": {"live": ["look"]}}


def told_by_code(result: dict[str, Any]) -> dict[str, Any]:
    """What the check of `tests.agents.looking` tells."""
    assert result["error"] is None, result["error"]
    found: dict[str, Any] = json.loads(json.loads(result["record"])["output"])
    return found


def told_by_tool(result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result["record"])["steps"][1]["result"]
    return found


def looking_around(**given: Any) -> dict[str, Any]:
    return replay_in_child("tests.agents.looking:agent", recorded_record(), order=LIVE, **given)


@pytest.fixture(scope="module")
def looked() -> dict[str, Any]:
    """One replay, of which several tests ask different things."""
    return looking_around()


def test_the_environment_of_the_tests_has_something_to_hide():
    assert SECRETS & set(os.environ)


def test_a_path_in_an_open_folder_is_at_home_where_that_folder_is(tmp_path: Path):
    (tmp_path / "home").mkdir()
    home, inside, outside = str(tmp_path / "home"), os.open(tmp_path / "home", os.O_RDONLY), os.open("/", os.O_RDONLY)
    try:
        assert stays_home("os.remove", ("note", inside), home)
        assert stays_home("os.rename", ("note", "other", inside, inside), home)
        assert not stays_home("os.remove", ("note", outside), home)
        assert not stays_home("os.remove", ("../note", inside), home)
        assert not stays_home("os.remove", ("note", -1), home)
        assert not stays_home("os.rename", ("note", "other", inside, outside), home)
    finally:
        os.close(inside)
        os.close(outside)
