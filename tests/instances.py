"""Real instances: `manage.py up` in a process of its own, on a home of its own."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from replay_web.supervisor.home import PROJECT_ROOT, Home

READY = re.compile(r"Replay is ready at (\S+)")
OF_THE_TESTS = (
    "DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "DJANGO_SETTINGS_MODULE",
    "REPLAY_HOME",
    "PORT",
    "HOST",
    "DJANGO_ALLOW_ASYNC_UNSAFE",
)
PATIENCE = 60.0


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A product that runs."""

    url: str
    home: Home
    process: subprocess.Popen[str]
    output: Path

    @property
    def connection(self) -> dict[str, Any]:
        """What `up` wrote for scripts: url, username, password, api_key."""
        try:
            found: dict[str, Any] = json.loads(self.home.connection.read_text())
        except FileNotFoundError:
            return {}
        return found

    @property
    def username(self) -> str:
        return str(self.connection["username"])

    @property
    def password(self) -> str:
        return str(self.connection["password"])

    @property
    def api_key(self) -> str:
        return str(self.connection["api_key"])

    def pids(self, name: str | None = None) -> list[int]:
        """The recorded children; one of them by name (postgres, redis, web, worker)."""
        children = self.home.state()["children"]
        return [child["pid"] for key, child in children.items() if name in (None, key)]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


def clean_environment(**extra: str) -> dict[str, str]:
    """Ours without what the test run set up for itself."""
    return {name: value for name, value in os.environ.items() if name not in OF_THE_TESTS} | extra


AS_SYSTEMD = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"'


def start_up(
    home: Path, listening: socket.socket | None = None, /, **environment: str
) -> tuple[subprocess.Popen[str], Path]:
    """`manage.py up` on a free port or on this socket, which it is given as systemd gives it; not waited for."""
    output = Path(tempfile.mkstemp(prefix="up-", dir=home.parent)[1])
    command = [sys.executable, "manage.py", "up"]
    with output.open("w") as written:
        process = subprocess.Popen(
            ["sh", "-c", AS_SYSTEMD, *command] if listening else command,
            pass_fds=[3] if listening else [],
            preexec_fn=partial(os.dup2, listening.fileno(), 3) if listening else None,
            env=clean_environment(**{"REPLAY_HOME": str(home), "PORT": "0"} | environment),
            cwd=PROJECT_ROOT,
            stdout=written,
            stderr=subprocess.STDOUT,
            text=True,
        )
    return process, output


def start_instance(home: Path, listening: socket.socket | None = None, /, **environment: str) -> Instance:
    """The same, and wait for its line."""
    process, output = start_up(home, listening, **environment)
    until = time.monotonic() + PATIENCE
    while not (found := READY.search(output.read_text())):
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            raise AssertionError(f"`manage.py up` did not get ready:\n{output.read_text()}")
        time.sleep(0.02)
    return Instance(url=found[1], home=Home(home), process=process, output=output)


def wait_for_worker(instance: Instance) -> None:
    """It starts after the web server, so as not to keep the first page waiting."""
    environment = clean_environment(REPLAY_HOME=str(instance.home.path))
    until = time.monotonic() + PATIENCE
    while manage("doctor", environment=environment).returncode != 0:
        assert time.monotonic() < until, "the instance does not get well"


def fails_to_start(home: Path, listening: socket.socket | None = None, /, **environment: str) -> str:
    """What `manage.py up` says when it cannot start."""
    process, output = start_up(home, listening, **environment)
    assert process.wait(PATIENCE) == 1
    return output.read_text()


@contextmanager
def instance_in(folder: Path, listening: socket.socket | None = None, /, **environment: str) -> Iterator[Instance]:
    """An instance for one block; stopped at its end if it still runs."""
    instance = start_instance(folder / "home", listening, **environment)
    try:
        yield instance
    finally:
        if instance.process.poll() is None:
            instance.stop()


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user may pass through, which pytest's tmp_path is not."""
    folder = Path(tempfile.mkdtemp(prefix="replay-test-", dir="/tmp"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def manage(*arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a management command to its end."""
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=PATIENCE)
