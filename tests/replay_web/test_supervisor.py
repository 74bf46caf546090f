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
from replay_web.supervisor.processes import children
from replay_web.supervisor.up import Supervisor


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
