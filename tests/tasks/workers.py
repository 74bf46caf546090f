"""Real workers and a real Redis, started, killed and stopped by the tests."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from django.db import connection

from replay_web.supervisor.account import Account
from replay_web.supervisor.home import PROJECT_ROOT, Home
from replay_web.supervisor.processes import stat_fields
from replay_web.supervisor.redis import Redis, answers

LEASE, SWEEP = 2, 1  # seconds, in place of 30 and 5


@dataclass
class Worker:
    """`python -m replay_web.worker` on the database of the tests, started again whenever it ends."""

    redis_url: str
    module: str = "replay_web.worker"
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module], env=self.environment(), cwd=PROJECT_ROOT, start_new_session=True
        )

    def environment(self) -> dict[str, str]:
        name = connection.settings_dict["NAME"]
        return {
            **os.environ,
            "DATABASE_URL": urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl(),
            "REDIS_URL": self.redis_url,
            "REPLAY_LEASE_SECONDS": str(LEASE),
            "REPLAY_SWEEP_SECONDS": str(SWEEP),
            "LOG_LEVEL": "CRITICAL",
            "CELERY_SKIP_CHECKS": "1",  # half a second of every start
            **self.settings,
        }

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def children(self) -> list[int]:
        """The replay processes: the fork server's keepers have one each."""
        keepers = children_of(children_of([self.process.pid]))
        return children_of(keepers)

    def every_process(self) -> list[int]:
        """All that it has started, and what these have."""
        found = newest = children_of([self.process.pid])
        while newest := children_of(newest):
            found = found + newest
        return found

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


@contextmanager
def working(worker: Worker) -> Iterator[Worker]:
    worker.start()
    try:
        yield worker
    finally:
        if worker.process.poll() is None:
            worker.stop()


@dataclass
class OwnRedis:
    """A Redis that may be killed."""

    socket: Path
    binary: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        options = ("--port", "0", "--unixsocket", str(self.socket), "--save", "", "--loglevel", "warning")
        folder = ("--dir", str(self.socket.parent))
        self.process = subprocess.Popen([self.binary, *options, *folder], stdout=subprocess.DEVNULL)
        wait_until(lambda: answers(self.socket), 5)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def own_redis() -> Iterator[OwnRedis]:
    with tempfile.TemporaryDirectory(prefix="replay-redis-", dir="/tmp") as folder:
        account, here = Account(os.geteuid(), os.getegid()), Path(folder)
        binary = Redis(home=Home(here), account=account, services=here, sockets=here).binary()
        redis = OwnRedis(socket=here / "redis.sock", binary=binary)
        try:
            yield redis
        finally:
            redis.kill()


def wait_until(is_so: Callable[[], object], seconds: float) -> float:
    """How long it took."""
    started = time.monotonic()
    while not is_so():
        assert time.monotonic() < started + seconds, "it did not happen in time"
        time.sleep(0.02)
    return time.monotonic() - started


def children_of(parents: list[int]) -> list[int]:
    parent_of = {pid: stat_fields(pid)[1:2] for pid in all_pids()}  # read once: a process may end in between
    return [pid for pid, found in parent_of.items() if found and int(found[0]) in parents]
