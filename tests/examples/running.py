"""Examples as people start them: one command, in a process of its own, with nothing outside this machine in reach."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from replay_web.supervisor.home import PROJECT_ROOT
from tests.instances import clean_environment

EXAMPLES = PROJECT_ROOT / "examples"
NO_NETWORK = Path(__file__).with_name("no_network")
OF_THE_RECORDER = ("REPLAY_URL", "REPLAY_KEY", "REPLAY_SPOOL", "REPLAY_RECORD", "PYTHONPATH")


@dataclass(frozen=True, kw_only=True)
class Ran:
    status: int
    lines: list[str]
    """What it printed."""
    errors: str
    recordings: list[Path]
    """What it left in its temporary folder."""


def run_example(folder: Path, command: str, **environment: str) -> Ran:
    """Run `python -m examples.COMMAND`; `folder` becomes the place of its temporary files."""
    name, *arguments = command.split()
    done = run_python(folder, "-m", f"examples.{name.removesuffix('.py')}", *arguments, **environment)
    recordings = sorted(folder.glob("*/*/*.run"))
    return Ran(status=done.returncode, lines=done.stdout.splitlines(), errors=done.stderr, recordings=recordings)


def run_python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in clean_environment().items() if name not in OF_THE_RECORDER}
    ours |= {"TMPDIR": str(folder), "PYTHONPATH": str(NO_NETWORK)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=ours | environment, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=120
    )


def import_example(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    """An example as a module, for what its printed lines do not show."""
    monkeypatch.syspath_prepend(str(PROJECT_ROOT))
    return importlib.import_module(f"examples.{name}")


def files_beside() -> set[str]:
    """All files of the examples but what Python keeps for itself."""
    return {os.path.relpath(path, EXAMPLES) for path in EXAMPLES.rglob("*") if "__pycache__" not in path.parts}
