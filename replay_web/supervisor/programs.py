"""The product's own programs: the web server, the worker, and the step that makes a home ready for them."""

import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from replay_web.supervisor.home import IS_CHECKOUT, PROJECT_ROOT, Home, bundled
from replay_web.supervisor.port import Port
from replay_web.supervisor.processes import Program


def web(home: Home, environment: Mapping[str, str], port: Port) -> Program:
    file = port.listening.fileno()
    return Program(
        name="web",
        command=[sys.executable, "-m", "replay_web.web", str(file)],
        open_files=[file],
        environment=environment,
        log=home.logs / "web.log",
        folder=PROJECT_ROOT,
        grace=15,
        is_killed_while_starting=True,
        is_ready=lambda pid: answers(port.reachable, port.number),
    )


def worker(home: Home, environment: Mapping[str, str]) -> Program:
    return Program(
        name="worker",
        command=[sys.executable, "-m", "replay_web.worker"],
        environment=environment,
        log=home.logs / "worker.log",
        folder=PROJECT_ROOT,
        grace=15,
    )


def preparation(home: Home, environment: Mapping[str, str], url: str, *, with_static: bool) -> Program:
    """Migrates, collects static files, fills a new home; ends when done.

    Without static files it may run beside the web server, which reads their folder when it starts.
    """
    extra = [] if with_static else ["--keep-static"]
    return Program(
        name="preparation",
        command=[sys.executable, "-m", "replay_web.command", "prepare_home", url, *extra],
        environment=environment,
        log=home.logs / "preparation.log",
        folder=PROJECT_ROOT,
    )


def agents(home: Home, environment: Mapping[str, str]) -> Program:
    """Loads the team's agents and writes down which cannot be; ends when done."""
    return Program(
        name="agents",
        command=[sys.executable, "-m", "replay_web.command", "agents"],
        environment=environment,
        log=home.logs / "agents.log",
        folder=PROJECT_ROOT,
    )


def answers(host: str, port: int) -> bool:
    """Whether the web server says that it is well."""
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return connection.recv(64).split()[1:2] == [b"200"]
    except OSError:
        return False


def fingerprint() -> str:
    """Changes when migrations, static files or packages do: then a home has to be prepared before it is served."""
    return "".join(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}\n" for path in fingerprinted())


def fingerprinted() -> Iterator[Path]:
    yield from sorted((PROJECT_ROOT / "sessions_app" / "migrations").glob("*.py"))
    yield from sorted(path for path in bundled("static").rglob("*") if path.is_file())
    yield from (lock for lock in [PROJECT_ROOT / "requirements.lock"] if IS_CHECKOUT)
