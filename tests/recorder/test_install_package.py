"""The package as others get it: built, installed into a fresh environment, imported and run."""

import json
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import replay_recorder
from replay_web.supervisor.home import PROJECT_ROOT

SOURCE = PROJECT_ROOT / "replay_recorder"
IMPORTED = """
import json, sys
before = set(sys.modules)
import replay_recorder
replay_recorder.install(spool=sys.argv[1])
replay_recorder.uninstall()
names = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(json.dumps([sorted(names), replay_recorder.__file__]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy: a build leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    pip_wheel = ["pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([sys.executable, "-m", *pip_wheel, "--wheel-dir", folder, folder / "source"], check=True)
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A fresh one that holds the package and nothing else; its folder of programs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    install = ["pip", "--python", folder / "bin/python", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run([sys.executable, "-m", *install], check=True)
    return folder / "bin"


def test_the_wheel_holds_every_module_and_nothing_else(wheel):
    expected = {
        str(Path("replay_recorder", path.relative_to(SOURCE)))
        for path in [*SOURCE.rglob("*.py"), SOURCE / "py.typed"]
        if "build" not in path.parts
    }

    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    assert held == expected


def test_it_asks_for_no_other_package_and_says_its_version(wheel):
    said = zipfile.ZipFile(wheel).read(f"replay_recorder-{replay_recorder.__version__}.dist-info/METADATA").decode()

    assert "Requires-Dist" not in said
    assert "Requires-Python: >=3.10" in said
    assert "replay_recorder.install(" in said
    assert tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["version"] == replay_recorder.__version__


def test_installed_it_imports_the_standard_library_alone(environment, tmp_path):
    done = subprocess.run(
        [environment / "python", "-I", "-c", IMPORTED, tmp_path], capture_output=True, text=True, check=True
    )

    names, file = json.loads(done.stdout)
    assert names == ["replay_recorder"]
    assert Path(file).is_relative_to(environment.parent)


@pytest.mark.parametrize("command", [["replay-recorder"], ["python", "-I", "-m", "replay_recorder"]], ids=" ".join)
def test_installed_it_has_its_command(environment, tmp_path, command):
    record = tmp_path / "r.json"
    record.write_text('{"format": "agent-replay.run", "version": 1, "run_id": "r_8821", "steps": []}')

    done = subprocess.run(
        [environment / command[0], *command[1:], "inspect", record], capture_output=True, text=True, cwd=tmp_path
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "run r_8821" in done.stdout
