"""Processes that outlived their supervisor."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from replay_web.supervisor.home import Home
from replay_web.supervisor.leftovers import boot_id, end_leftovers
from replay_web.supervisor.processes import started_at


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.prepare()
    return home


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child, in a session of its own."""
    process = subprocess.Popen(["sh", "-c", "sleep 600 & wait"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_an_orphan_is_ended(home, sleeper):
    home.remember(boot=boot_id(), children={"web": {"pid": sleeper.pid, "started": started_at(sleeper.pid)}})

    end_leftovers(home)

    assert sleeper.wait(5) != 0
    assert home.state() == {}


def test_a_pid_that_went_to_somebody_else_is_left_alone(home, sleeper):
    home.remember(boot=boot_id(), children={"web": {"pid": sleeper.pid, "started": 1}})

    end_leftovers(home)

    assert sleeper.poll() is None


def test_pids_of_an_earlier_run_of_the_machine_mean_nothing(home, sleeper):
    home.remember(boot="another", children={"web": {"pid": sleeper.pid, "started": started_at(sleeper.pid)}})

    end_leftovers(home)

    assert sleeper.poll() is None
