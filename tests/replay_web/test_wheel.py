"""The server as a package: built, installed into an environment of its own, started in an empty folder."""

import email
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from django.core.management import find_commands, get_commands

from replay_web import command
from replay_web.supervisor.home import PROJECT_ROOT
from tests.instances import PATIENCE, READY, clean_environment

PACKAGES = ("replay_web", "sessions_app", "replay_recorder", "replay_goldens")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", ".*", "tests", "benchmarks", "docs")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: a build leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(PROJECT_ROOT, folder / "source", ignore=LEFT_OUT)
    pip_wheel = ["pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([sys.executable, "-m", *pip_wheel, "--wheel-dir", folder, folder / "source"], check=True)
    return Path(next(folder.glob("*.whl")))


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory) -> Path:
    """Of an environment that holds the wheel, and looks for what it needs in ours."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    install = ["pip", "--python", folder / "bin/python", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run([sys.executable, "-m", *install], check=True)
    [own] = folder.glob("lib/python*/site-packages")
    (own / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return Path(folder, "bin")


def test_it_holds_what_a_checkout_holds(wheel):
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = {str(Path("replay_web", path)) for folder in ("templates", "static") for path in files_in(folder)}
    code = {path for folder in PACKAGES for path in files_in(folder) if path.endswith((".py", ".zstd", "py.typed"))}

    assert len(tracked) > 200
    assert held >= tracked | code
    assert {name.partition("/")[0] for name in held} == set(PACKAGES)


def files_in(folder: str) -> set[str]:
    found = (path for path in (PROJECT_ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(PROJECT_ROOT)) for path in found if not {"__pycache__", "build"} & set(path.parts)}


def test_it_says_what_it_is_and_needs(wheel):
    archive = zipfile.ZipFile(wheel)
    [name] = [name for name in archive.namelist() if name.endswith("dist-info/METADATA")]
    said = email.message_from_bytes(archive.read(name))
    needed = {re.split(r"[^\w-]", need)[0] for need in said.get_all("Requires-Dist", []) if "extra ==" not in need}
    written = "".join((PROJECT_ROOT / f"requirements{kind}.in").read_text() for kind in ("", "-runner"))

    assert (said["Name"], said["License-Expression"]) == ("agent-incident-replay", "Apache-2.0")
    assert said["Summary"]
    assert needed == set(re.findall(r"^([\w-]+)", written, re.MULTILINE))


def test_in_an_empty_folder_it_does_what_manage_up_does(programs, tmp_path):
    environment = clean_environment(PORT="0")
    with (tmp_path / "said").open("w+") as said:
        process = subprocess.Popen([programs / "incident-replay", "up"], env=environment, cwd=tmp_path, stdout=said)
        try:
            url = until(lambda: READY.search((tmp_path / "said").read_text()), process)[1]
            connection = json.loads((tmp_path / ".replay/connection.json").read_text())
            page = urlopen(f"{url}/sign-in").read().decode()
            [style] = set(re.findall(r'href="(/static/css/base[^"]*)"', page))
            assert urlopen(f"{url}{style}").status == 200
            replay = ask(url, connection, "runs/cancel_5521/replays", {"mode": "code", "agent": "order_desk"})
            assert ask(url, connection, f"replays/{replay['replay_id']}?wait=60")["verdict"] == "reproduced"
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


def until(found: Callable[[], Any], process: subprocess.Popen[bytes]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (answer := found()):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.1)
    return answer


def ask(url: str, connection: dict[str, str], address: str, body: object = None) -> Any:
    headers = {"Authorization": f"Bearer {connection['api_key']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{url}/api/v1/{address}", data, headers)) as answer:
        return json.load(answer)


def test_help_names_our_commands_without_settings(programs, tmp_path):

    help_text = subprocess.check_output([programs / "incident-replay", "help"], env=clean_environment(), cwd=tmp_path)
    folders = [str(PROJECT_ROOT / app / "management") for app in ("replay_web", "sessions_app")]
    ours = {name for folder in folders for name in find_commands(folder)}

    listed = set(re.findall(r"^  (\w+) ", help_text.decode(), re.MULTILINE))
    assert listed == set(command.COMMANDS)
    assert ours <= listed


def test_every_command_that_help_names_is_there():
    assert set(command.COMMANDS) <= set(get_commands())
