"""An environment with the oldest supported Pydantic AI beside the tests' own, made once from its lock."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path(__file__).with_name("floor.lock")
ENVIRONMENT = ROOT / ".venv-floor"


def floor_python() -> Path:
    """The interpreter of that environment."""
    with LOCK.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not _is_made():
            _make()
    return ENVIRONMENT / "bin" / "python"


def _is_made() -> bool:
    """A lock that was installed to the end has its copy there."""
    copy = ENVIRONMENT / LOCK.name
    return copy.exists() and copy.read_bytes() == LOCK.read_bytes()


def _make() -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
    pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "--no-deps", "--no-compile", "-r", str(LOCK)], check=True)
    (ENVIRONMENT / LOCK.name).write_bytes(LOCK.read_bytes())
