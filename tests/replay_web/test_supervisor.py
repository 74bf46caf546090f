"""The watch over the programs, by itself."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
import time
from pathlib import Path

from replay_web.supervisor.home import Home
from replay_web.supervisor.port import Port, bound
from replay_web.supervisor.processes import Program, children
from replay_web.supervisor.up import Supervisor
from replay_web.supervisor.watch import Watched


def test_children_are_found_while_threads_come_and_go():
    is_over = threading.Event()

    def churn() -> None:
        while not is_over.is_set():
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()

    threads = [threading.Thread(target=churn) for _ in range(2)]
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        for thread in threads:
            thread.start()
        try:
            until = time.monotonic() + 1
            while time.monotonic() < until:
                assert child.pid in children()
        finally:
            is_over.set()
            for thread in threads:
                thread.join()


class Troubled(Supervisor):
    def look(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_round_that_fails_is_said_once_and_is_not_the_last(tmp_path: Path):
    said: list[str] = []
    with bound("127.0.0.1", 0) as listening:
        supervisor = Troubled(Home(tmp_path), Port("127.0.0.1", listening), say=said.append)
        for _ in range(3):
            supervisor.look_on()

    assert said == ["The watch goes on after: [Errno 28] No space left on device"]


def test_the_pause_grows_until_the_program_has_served_again(tmp_path: Path):
    said: list[str] = []
    program = Program(name="brief", command=["true"], environment={}, log=tmp_path / "log")
    watched = Watched(program, lambda name, pid: None, said.append)

    def end() -> float:
        watched.start()
        watched.process.wait()
        watched.look()
        return watched.pause

    assert [end(), end(), end()] == [1.0, 2.0, 4.0]
    watched.note_well()
    assert end() == 1.0
    assert "brief ended (0); starting it again in 1 s." in said[-1]
