"""docs/incident-to-golden.md, as it is printed, from steps 1 to 3 of docs/first-replay.md on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.instances import Instance, clean_environment
from tests.recorder import test_first_replay
from tests.recorder.openai_provider import Provider
from tests.recorder.test_first_replay import MODULES, ROOT, commands

PAGE = Path("docs/incident-to-golden.md").read_text()
PRINTED = re.findall(r"^    ((?:Failed|Passed)  .*)$", PAGE, re.MULTILINE)
TYPED = [line for line in re.findall(r"^    (.*)$", PAGE, re.MULTILINE) if line not in PRINTED]

scripted, programs = test_first_replay.scripted, test_first_replay.programs


@pytest.mark.parametrize("module", MODULES, ids=["pydantic-ai", "openai-agents"])
def test_the_way_from_an_incident_to_a_golden_runs_as_printed(
    running_instance: Instance, scripted: Provider, programs: Path, module: str
):
    folder = programs.parents[1]
    (folder / "shop.py").write_text(module)
    (programs / "pytest").write_text(f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -P -m pytest "$@"\n')
    (programs / "pytest").chmod(0o755)
    script = "\n".join([commands(1), commands(3), *TYPED]).replace("http://127.0.0.1:8000", running_instance.url)
    script = script.replace('"$CHECKOUT/.replay/', f'"{running_instance.home.path}/')
    environment = clean_environment(
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
        HOME=str(folder),
        OPENAI_API_KEY="dummy",
        OPENAI_BASE_URL=f"{scripted.server.url}/v1",
        OPENAI_AGENTS_DISABLE_TRACING="1",
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        PYTEST_PLUGINS="replay_goldens.pytest_plugin",
    )

    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=180
    )

    said = done.stdout.splitlines()
    assert (done.returncode, len(scripted.server.received)) == (0, 3), done.stdout + done.stderr
    assert [line for line in said if line.startswith("Reproduced")] == ["Reproduced: same 5 steps, same answer"]
    assert [line for line in said if line.startswith(("Failed", "Passed"))] == PRINTED
    assert "1 passed" in said[-1]
