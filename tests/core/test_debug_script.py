"""The file that a developer downloads: it is run here as they run it, with a debugger that goes on at once."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sessions_app.core.debug_script import debug_script

RECORD = Path("sessions_app/examples/cancel_bug.json").resolve()
AGENT = "examples.registered_agents:order_desk_fixed"
GOING_ON = "import sys; print('paused in', sys._getframe(1).f_code.co_name)"


def run_script(tmp_path: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "debug.py").write_text(text)
    (tmp_path / "going_on.py").write_text(f"def go_on(*arguments):\n    {GOING_ON}\n")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{tmp_path}:{Path.cwd()}",
        "PYTHONBREAKPOINT": "going_on.go_on",
    }
    command = [sys.executable, str(tmp_path / "debug.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)


@pytest.mark.parametrize(
    ("breakpoints", "stops"),
    [
        ([{"step": 3}], ["Stop 3: step 3, model model "]),
        ([{"tool": "lookup_order"}], ["Stop 2: step 2, tool lookup_order {'order_id': 'ORD-5521'}"]),
        ([{"when": 'args.order_id = "ORD-5521"'}], ["Stop 2: step 2, tool lookup_order {'order_id': 'ORD-5521'}"]),
        (
            [],
            [
                "Stop 1: step 1, model model ",
                "Stop 2: step 2, tool lookup_order {'order_id': 'ORD-5521'}",
                "Stop 3: step 3, model model ",
            ],
        ),
    ],
)
def test_it_stops_where_it_was_asked_to_and_says_what_came_of_it(tmp_path: Path, breakpoints: Any, stops: list[str]):
    done = run_script(tmp_path, debug_script("cancel_5521", AGENT, breakpoints), str(RECORD))

    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in lines if line.startswith("Stop")] == stops
    assert lines.count("paused in reach") == len(stops)
    assert lines[-4:-1] == [
        "diverged",
        "step 4, result",
        "  recorded: Order ORD-5521 cancelled. Reason: changed my mind",
    ]


def test_another_agent_can_be_named(tmp_path: Path):
    done = run_script(
        tmp_path,
        debug_script("cancel_5521", AGENT, [{"step": 99}]),
        str(RECORD),
        "examples.registered_agents:order_desk",
    )

    assert done.stdout.split() == ["reproduced"]


def test_the_record_of_another_run_is_refused(tmp_path: Path):
    done = run_script(tmp_path, debug_script("run_1", AGENT, []), str(RECORD))

    assert (done.returncode, done.stderr) == (1, "The record is of 'cancel_5521', and this file is for 'run_1'.\n")


@pytest.mark.parametrize(
    "run_id", ["'''\"\"\"", 'x"); import os; os.abort() #', "\\", "\n", "ünï\u2028 \U0001f600", "@SETUP@"]
)
def test_whatever_a_run_is_called_stays_text(run_id: str):
    tree = ast.parse(debug_script(run_id, AGENT, []))

    ordinary = ast.parse(debug_script("run_1", AGENT, []))
    assert without_texts(tree) == without_texts(ordinary)


def without_texts(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = type(node.value).__name__
    return ast.dump(tree)
