"""Native code in a replay of the team's own agent: what it reaches, and that the replay says so."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from ctypes.util import find_library
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sessions_app.agents.process import kernel, seal
from sessions_app.agents.process.code_sandbox import CodeChild
from sessions_app.core.replay.isolation import EVERYTHING, HOOK_ONLY, world_in_words
from tests.agents.child_without_namespaces import ChildWithoutNamespaces
from tests.agents.code_talking import replay_in_child
from tests.agents.native import SAID, recorded_record
from tests.agents.unsealed_child import UnsealedChild

NOTHING_REACHED: dict[str, Any] = {**dict.fromkeys(EVERYTHING, False), "secret": None}
EVERYTHING_REACHED: dict[str, Any] = {**dict.fromkeys(EVERYTHING, True), "secret": "password"}


@dataclass
class Outside:
    """What lies outside of a replay, and shows whether somebody came."""

    folder: Path
    library: Path | None
    servers: dict[str, socket.socket] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        compiled = {"NATIVE_LIBRARY": str(self.library)} if self.library else {}
        return {
            **compiled,
            "NATIVE_PORT": str(self.servers["network"].getsockname()[1]),
            "NATIVE_LIVE_PORT": str(self.servers["live"].getsockname()[1]),
            "NATIVE_SOCKET": self.servers["local"].getsockname(),
            "NATIVE_FILE": str(self.folder / "written"),
            "NATIVE_SECRET": str(self.folder / "home" / "secret"),
        }

    def connections(self, name: str) -> int:
        """Since it was last asked."""
        came = 0
        while True:
            try:
                self.servers[name].accept()[0].close()
            except BlockingIOError:
                return came
            came += 1

    def wrote(self) -> bool:
        return (self.folder / "written").exists()


@pytest.fixture(params=["ctypes", "compiled"])
def outside(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    found = Outside(tmp_path, compiled(tmp_path) if request.param == "compiled" else None)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret").write_text("password")
    monkeypatch.setenv("REPLAY_HOME", str(tmp_path / "home"))
    found.servers = {"network": socket.create_server(("127.0.0.1", 0)), "live": socket.create_server(("127.0.0.1", 0))}
    found.servers["local"] = socket.socket(socket.AF_UNIX)
    found.servers["local"].bind(str(tmp_path / "s"))
    found.servers["local"].listen()
    for server in found.servers.values():
        server.setblocking(False)
    yield found
    for server in found.servers.values():
        server.close()


def compiled(folder: Path) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("There is no C compiler.")
    library = folder / "native.so"
    source = Path(__file__).with_name("native.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def machine_grants_everything() -> bool:
    made = subprocess.run(["unshare", "--user", "--map-root-user", "--net", "--mount", "true"], capture_output=True)
    return has_seccomp() and made.returncode == 0


def has_seccomp() -> bool:
    return importlib.util.find_spec("pyseccomp") is not None and find_library("seccomp") is not None


def replay(outside: Outside, child_type: type[CodeChild] = CodeChild, **order: Any) -> dict[str, Any]:
    return replay_in_child(
        "tests.agents.native:agent",
        recorded_record(),
        environment=outside.environment,
        order=order,
        child_type=child_type,
    )


def told_by(result: dict[str, Any]) -> dict[str, Any]:
    """What native code says that it reached before the first request."""
    assert result["error"] is None
    request = json.loads(result["record"])["steps"][0]["request"]
    found: dict[str, Any] = json.loads(request["messages"][0]["instructions"].removeprefix(SAID))
    return found


def test_outside_of_a_fence_native_code_reaches_everything(outside: Outside):
    """The control: whatever is not reached below is kept away by the fence."""
    program = [
        sys.executable,
        "-c",
        "import json; from tests.agents.native import reached; print(json.dumps(reached()))",
    ]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, **outside.environment, "PYTHONPATH": root}

    told = json.loads(subprocess.check_output(program, env=environment))

    assert told == EVERYTHING_REACHED
    assert (outside.connections("network"), outside.connections("local"), outside.wrote()) == (1, 1, True)


def test_a_replay_says_exactly_what_native_code_can_reach(outside: Outside):
    """On every machine, whatever its kernel grants."""
    result = replay(outside)
    held, told = result["facts"]["fence"]["held"], told_by(result)

    assert {reach: told[reach] for reach in EVERYTHING} == {reach: reach not in held for reach in EVERYTHING}
    assert (outside.connections("network") == 0) == ("network" in held)
    assert (outside.connections("local") == 0) == ("local sockets" in held)
    assert outside.wrote() == ("disk" not in held)


@pytest.mark.skipif(not machine_grants_everything(), reason="no user namespaces or no libseccomp with its binding")
def test_nothing_gets_out_where_the_kernel_says_no(outside: Outside):
    result = replay(outside)

    assert told_by(result) == NOTHING_REACHED
    assert (outside.connections("network"), outside.connections("local"), outside.wrote()) == (0, 0, False)
    assert result["facts"]["isolation"] == "namespaces, read-only root, seccomp and audit hook"
    assert world_in_words(result["facts"]) == "0 network calls, 0 writes"


@pytest.mark.skipif(not machine_grants_everything(), reason="no user namespaces or no libseccomp with its binding")
@pytest.mark.skipif(kernel.landlock_version() < 3, reason="no Landlock that knows truncation")
def test_where_namespaces_are_refused_the_rest_holds_and_is_named(outside: Outside):
    """Files can be hidden by namespaces alone."""
    result = replay(outside, ChildWithoutNamespaces)

    assert told_by(result) == {**NOTHING_REACHED, "secret": "password"}
    assert (outside.connections("network"), outside.connections("local"), outside.wrote()) == (0, 0, False)
    assert result["facts"]["fence"] == {"kernel": ["Landlock", "seccomp"], "held": list(EVERYTHING)}
    assert result["facts"]["isolation"] == "Landlock, seccomp and audit hook"


def test_without_the_kernel_nothing_is_claimed(outside: Outside):
    result = replay(outside, UnsealedChild)

    assert told_by(result) == EVERYTHING_REACHED
    assert outside.connections("network") > 0
    assert outside.wrote()
    assert result["facts"]["isolation"] == HOOK_ONLY
    assert world_in_words(result["facts"]) == HOOK_ONLY


@pytest.mark.skipif(not machine_grants_everything(), reason="no user namespaces or no libseccomp with its binding")
def test_a_live_tool_reaches_its_server_and_nothing_beside_it_does(outside: Outside):
    result = replay(outside, tools={"live": ["look"]}, on_difference="play_on")

    assert told_by(result) == NOTHING_REACHED
    assert (outside.connections("network"), outside.connections("local"), outside.wrote()) == (0, 0, False)
    assert (outside.connections("live"), result["live_calls"]) == (1, 1)
    assert json.loads(result["record"])["steps"][1]["result"] is True
    assert result["facts"]["tool_isolation"] == "read-only root, seccomp and audit hook"
    assert world_in_words(result["facts"], is_live=True) == "0 other network calls, 0 writes"


ORDINARY_USER = """
import ctypes, os, sys
from pathlib import Path
import pyseccomp
from sessions_app.agents.process import fence_probes
from sessions_app.agents.process import seal
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as for a process that was started by this user
probes = fence_probes.Probes(Path(sys.argv[1]))
made = seal.seal(Path(sys.argv[1], "scratch"), [], has_network=False)
Path(sys.argv[1], "scratch", "file").write_text("written")
print(sorted(probes.held()), os.getuid())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not machine_grants_everything(), reason="no user namespaces or no libseccomp with its binding")
def test_an_ordinary_user_has_the_same_fence():
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)

        program = [sys.executable, "-c", ORDINARY_USER, folder]
        told = subprocess.check_output(program, text=True, cwd=Path(__file__).parents[2])

        assert told == "['disk', 'local sockets', 'network', 'programs'] 65534\n"
        assert not list(Path(folder, "scratch").iterdir()), "what was written there is in memory"


def test_what_holds_the_code_itself_is_not_hidden(tmp_path: Path):
    assert seal.holds_code(str(Path(__file__).parents[2]))
    assert seal.holds_code(sys.prefix)
    assert not seal.holds_code(str(tmp_path))
