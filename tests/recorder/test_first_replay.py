"""docs/first-replay.md, as it is printed, against a real server; only what is installed is there already."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.instances import Instance, clean_environment
from tests.recorder.openai_provider import Provider, calls, provider, says

PAGE = Path("docs/first-replay.md").read_text()
ROOT = Path(__file__).parents[2]
MODULES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ANSWER = 'The change takes effect at step 4: cancel_order now answers "It was delivered."'


def commands(section: int) -> str:
    """The lines that are typed in a section; what is printed begins with a word and not with a command."""
    text = re.split(r"^## ", PAGE, flags=re.MULTILINE)[section]
    lines = re.findall(r"^    (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return "\n".join(line for line in lines if not line.startswith(("The change", "CHECKOUT=", "export OPENAI")))


@pytest.fixture
def scripted() -> Iterator[Provider]:
    with provider() as made:
        order = '{"order_id": "ORD-5521"}'
        made.will_answer(calls(("lookup_order", order, "c1")), calls(("cancel_order", order, "c2")), says("Done."))
        yield made


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """What step 1 installs, as the tests have it."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "activate").write_text(f"PATH={folder}:$PATH\n")
    python = f'#!/bin/sh\n[ "$2" = venv ] || exec env PYTHONPATH={ROOT} {sys.executable} '
    for name, rest in {"python": '"$@"', "python3": '"$@"', "replay-recorder": '-m replay_recorder "$@"'}.items():
        (folder / name).write_text(f"{python}{rest}\n")
    (folder / "pip").write_text("#!/bin/sh\n")
    for file in folder.iterdir():
        file.chmod(0o755)
    return folder


@pytest.mark.parametrize("module", MODULES, ids=["pydantic-ai", "openai-agents"])
def test_the_first_replay_of_an_own_agent_runs_as_printed(
    running_instance: Instance, scripted: Provider, programs: Path, module: str
):
    """Control: without the fix the same command said that the run was reproduced."""
    folder = programs.parents[1]
    (folder / "shop.py").write_text(module)
    script = "\n".join(commands(section) for section in (1, 3, 4)).replace(
        "http://127.0.0.1:8000", running_instance.url
    )
    script = script.replace('"$CHECKOUT/.replay/', f'"{running_instance.home.path}/')
    environment = clean_environment(
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
        HOME=str(folder),
        OPENAI_API_KEY="dummy",
        OPENAI_BASE_URL=f"{scripted.server.url}/v1",
        OPENAI_AGENTS_DISABLE_TRACING="1",
    )

    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )

    said = done.stdout.splitlines()
    assert said[0] == "Done.", done.stderr
    assert [line for line in said if line.startswith("Reproduced")] == ["Reproduced: same 5 steps, same answer"] * 2
    assert sum(line.startswith(ANSWER) for line in said) == 1
    assert (done.returncode, len(scripted.server.received)) == (1, 3)
