"""A pytest plugin: private PostgreSQL and Redis for the run, up before Django reads its settings.

Given DATABASE_URL or REDIS_URL, the tests use those. Of several processes each has services of its own.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from replay_web.supervisor.home import Home
from replay_web.supervisor.port import Port, bound
from replay_web.supervisor.up import Supervisor
from replay_web.supervisor.watch import stop_all

HOST = "127.0.0.1"
_running: list[Supervisor] = []
_NAMES = "REPLAY_TEST_SERVICES"
"""Names of the variables that this plugin has set, for the processes that inherit them."""


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """A wrapper, because pytest-django loads the settings in the very same hook."""
    early_config.add_cleanup(stop_services)
    start_services()
    yield


def make_home() -> Home:
    """A home of its own in a folder that PostgreSQL's user may pass through, which pytest's tmp_path is not."""
    folder = Path(tempfile.mkdtemp(prefix="replay-test-", dir="/tmp"))
    folder.chmod(0o711)
    home = Home(folder / "home")
    home.prepare()
    return home


def start_services() -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        for name in os.environ.pop(_NAMES, "").split():
            os.environ.pop(name, None)
    supervisor = Supervisor(make_home(), Port(HOST, bound(HOST, 0)), say=lambda line: None, is_durable=False)
    _running.append(supervisor)
    made = {"REPLAY_HOME": str(supervisor.home.path), **supervisor.start_services()}
    os.environ.update(made, **{_NAMES: " ".join(made)})


def stop_services() -> None:
    while _running:
        supervisor = _running.pop()
        stop_all([supervisor.services])
        shutil.rmtree(supervisor.home.path.parent, ignore_errors=True)
