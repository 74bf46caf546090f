"""The fences, tried from inside of the replay process itself."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_app.agents.process.forking import bare_environment
from sessions_app.agents.process.sandbox import ReplayChild
from sessions_app.core.replay.isolation import HOOK_ONLY
from tests.agents import probes
from tests.agents.talking import ask, example, probe, running
from tests.agents.test_native_code import has_seccomp

SECRETS = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SECRET_KEY_FILE", "DJANGO_SETTINGS_MODULE", "REPLAY_HOME"}


@pytest.fixture(scope="module")
def child() -> Iterator[ReplayChild]:
    with running() as started:
        yield started


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server on loopback that answers HTTP, for whoever gets through."""
    program = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline().split(" port ")[1].split()[0])
        server.kill()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "kept").write_text("as it was")
    return tmp_path / "kept"


def from_outside(command: str) -> int:
    return subprocess.run([sys.executable, "-m", "tests.agents.probes", *command.split()]).returncode


def refused(result: dict[str, Any]) -> tuple[str, bool, int]:
    return result["verdict"], result["error"].startswith("WorldIsOff: "), result["refused_calls"]


@pytest.mark.parametrize("reach", probes.NETWORK, ids=lambda found: found.__name__)
def test_the_network_is_out_of_reach(child, port, reach):
    assert from_outside(f"{reach.__name__} {port}") == 0  # or the test would prove nothing

    assert refused(probe(child, f"{reach.__name__} {port}")) == ("could_not_run", True, 1)


@pytest.mark.parametrize("reach", probes.PROGRAMS, ids=lambda found: found.__name__)
def test_no_program_is_started(child, reach):
    assert from_outside(reach.__name__) == 0

    assert refused(probe(child, reach.__name__)) == ("could_not_run", True, 1)


@pytest.mark.parametrize("reach", probes.DISK, ids=lambda found: found.__name__)
def test_the_disk_stays_as_it_was(child, file, reach):
    before = [(path.name, path.read_text(), path.stat().st_mode) for path in file.parent.iterdir()]

    assert refused(probe(child, f"{reach.__name__} {file}")) == ("could_not_run", True, 1)

    assert [(path.name, path.read_text(), path.stat().st_mode) for path in file.parent.iterdir()] == before
    assert from_outside(f"{reach.__name__} {file}") == 0


def test_attempts_that_are_swallowed_are_counted_and_named(child, port):
    result = probe(child, f"try_three_times {port}")

    assert (result["verdict"], result["refused_calls"], result["live_calls"]) == ("reproduced", 3, 0)
    assert result["facts"]["refused"] == ["socket.connect"] * 3
    assert probe(child, "tell_time")["refused_calls"] == 0  # of the next replay


def test_without_the_audit_hook_there_is_still_no_network(child):
    """The kernel's own fence where it lets us have one, and the truth where it does not."""
    found = probe(child, "look_around")["facts"]
    own, ours = (os.readlink(f"/proc/{pid}/ns/net") for pid in (child.pid, os.getpid()))

    if "network" in found["fence"]["held"]:
        assert own != ours
        assert found["found"]["interfaces"] == ["lo"]  # which is down
    else:
        assert own == ours
        assert "the network" in found["isolation"] or found["isolation"] == HOOK_ONLY


REFUSED = """
import sys
from sessions_app.agents.process import kernel
from sessions_app.agents.process import world_off
def refuse(*arguments, **named):
    raise PermissionError(1, "Operation not permitted")
for part in sys.argv[1:]:
    if part == "pyseccomp":
        sys.modules[part] = None
    else:
        setattr(kernel, part, refuse)
fence = world_off.switch_off(memory_bytes=2**32, cpu_seconds=60)
print(fence.words, fence.to_json())
"""
PROGRAM = [sys.executable, "-c", REFUSED]
"""What the machine lacks follows."""


def test_what_the_kernel_refuses_is_not_reported_as_a_fence():
    """A user that may not make namespaces, on a machine without Landlock and libseccomp."""
    told = subprocess.check_output([*PROGRAM, "unshare", "write_only_in", "pyseccomp"], text=True)

    assert told == f"{HOOK_ONLY} {{'kernel': [], 'held': []}}\n"


def test_landlock_alone_is_not_said_to_keep_the_disk():
    """It lets modes, owners and times of files be changed."""
    told = subprocess.check_output([*PROGRAM, "unshare", "pyseccomp"], text=True)

    assert told == f"{HOOK_ONLY} {{'kernel': [], 'held': []}}\n"


@pytest.mark.skipif(not has_seccomp(), reason="no libseccomp with its binding")
def test_seccomp_alone_is_not_said_to_keep_the_disk():
    told = subprocess.check_output([*PROGRAM, "unshare", "write_only_in"], text=True)

    assert told.startswith("seccomp and audit hook; native code is not kept from the disk {")


def test_the_child_knows_no_secrets_and_no_addresses(child):
    assert SECRETS & set(os.environ)  # the tests have some to give away

    environment = Path(f"/proc/{child.pid}/environ").read_bytes()

    names = {entry.partition(b"=")[0].decode() for entry in environment.split(b"\0") if entry}
    assert names <= bare_environment().keys()
    assert SECRETS.isdisjoint(names)
    values = [os.environ[name].encode() for name in SECRETS & set(os.environ)]
    assert not [value for value in values if value in environment]
    assert SECRETS.isdisjoint(probe(child, "look_around")["facts"]["found"]["environment"])


def test_the_kernel_limits_memory_time_and_files(child):
    assert probe(child, "look_around")["facts"]["found"]["limits"] == {
        "AS": 4 * 1024**3,
        "CPU": 3600,
        "CORE": 0,
        "FSIZE": 0,
    }


@pytest.mark.parametrize("kind", ["image-url", "document-url"])
def test_an_address_in_a_prompt_is_not_fetched(child, kind):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/receipt.png"
        result = ask(child, with_link(example(), kind, url))
        with pytest.raises(TimeoutError):
            server.accept()

    assert (result["verdict"], result["error"], result["refused_calls"]) == ("reproduced", None, 0)


def with_link(record: dict[str, Any], kind: str, url: str) -> dict[str, Any]:
    """The record as it would be had the user sent a link along."""
    content = [record["input"], {"kind": kind, "url": url, "force_download": True}]
    linked: dict[str, Any] = json.loads(json.dumps(record).replace(json.dumps(record["input"]), json.dumps(content)))
    return linked
