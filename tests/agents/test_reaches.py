"""What native code of an ordinary user reaches from inside of a fence, with and without namespaces."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessions_app.agents.process import kernel
from tests.agents.reaching import REACHES, SECRET
from tests.agents.test_native_code import machine_grants_everything

ROOT = Path(__file__).parents[2]
needs_everything = pytest.mark.skipif(
    not machine_grants_everything(), reason="no user namespaces or no libseccomp with its binding"
)
needs_landlock = pytest.mark.skipif(kernel.landlock_version() < 6, reason="no Landlock that knows signals")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that an ordinary user can get at."""
    with tempfile.TemporaryDirectory() as made, closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as listener:
        place = Path(made)
        (place / "scratch").mkdir()
        (place / "file").write_text("as it was")
        os.mkfifo(place / "pipe")
        listener.bind(str(place / "socket"))
        reader = os.open(place / "pipe", os.O_RDWR)  # a pipe that nobody reads cannot be written
        yield place
        os.close(reader)


def reached(fence: str, folder: Path) -> dict[str, Any]:
    program = [sys.executable, "-m", "tests.agents.reaching", fence, str(folder)]
    told = subprocess.check_output(program, cwd=ROOT, env={**os.environ, SECRET: "password"})
    return dict(json.loads(told))


@needs_everything
def test_without_a_fence_all_of_it_is_reached(folder: Path):
    """The control."""
    assert reached("none", folder)["reached"] == [reach.__name__ for reach in REACHES]


@needs_everything
@needs_landlock
@pytest.mark.parametrize(("fence", "namespaces"), [("whole", True), ("without namespaces", False)])
def test_behind_a_fence_nothing_is_reached(folder: Path, fence: str, namespaces: bool):
    assert reached(fence, folder) == {"reached": [], "namespaces": namespaces, "landlock": True}
    assert (folder / "file").read_text() == "as it was"
