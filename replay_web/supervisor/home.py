"""REPLAY_HOME: the folder that holds everything one instance keeps."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from replay_web.supervisor.errors import CannotStart

PROJECT_ROOT = Path(__file__).resolve().parents[2]
"""The folder of our packages: a checkout, or where Python installs."""
IS_CHECKOUT = (PROJECT_ROOT / "manage.py").exists()


def bundled(name: str) -> Path:
    """`templates` or `static`: beside our packages in a checkout; the wheel has them inside."""
    return (PROJECT_ROOT if IS_CHECKOUT else PROJECT_ROOT / "replay_web") / name


SECRETS = ("secret_key", "database_password", "postgres_password")
_BRING_BACK = "It holds a secret of this instance: bring it back from a backup."


@dataclass(frozen=True, slots=True)
class Home:
    """Names the files of an instance; `prepare` makes its folders."""

    path: Path

    @classmethod
    def from_environment(cls) -> "Home":
        """The folder named by REPLAY_HOME, else `.replay` beside manage.py, or here where there is no manage.py."""
        beside = PROJECT_ROOT if IS_CHECKOUT else Path()
        return cls(Path(os.environ.get("REPLAY_HOME") or beside / ".replay").absolute())

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def services(self) -> Path:
        """Folder of the private services, or a link to it where they cannot read below `path`."""
        return self.path / "services"

    @property
    def static(self) -> Path:
        return self.path / "static"

    @property
    def connection(self) -> Path:
        return self.path / "connection.json"

    @property
    def prepared(self) -> Path:
        """Holds the fingerprint of the code that last migrated the database."""
        return self.path / "run" / "prepared"

    def publish_connection(self) -> None:
        """Let scripts find the server; call it when it answers."""
        try:
            write_private(self.connection, (self.path / "secrets" / "connection.json").read_text())
        except FileNotFoundError:
            return  # a database that was given and filled by others

    def withdraw_connection(self) -> None:
        self.connection.unlink(missing_ok=True)

    def is_prepared_for(self, code: str) -> bool:
        """Whether the last preparation was for this code, and what it made is still there."""
        has_static = (self.static / "staticfiles.json").exists()
        return has_static and self.prepared.exists() and self.prepared.read_text() == code

    def prepare(self) -> None:
        """Make the folders. Those who run the services may pass through the home; nobody may list it."""
        try:
            if not self.path.exists():
                self.path.mkdir(parents=True)
                self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
            for name in ("logs", "run", "secrets"):
                (self.path / name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise CannotStart(
                f"The folder {self.path} cannot be written ({error.strerror}). Set REPLAY_HOME to a folder that can."
            ) from error

    def secret(self, name: str) -> str:
        """A secret of this instance, made at the first asking and kept for its owner alone."""
        file = self.path / "secrets" / name
        if not file.exists():
            write_private(file, os.urandom(32).hex())
        return read_secret(file)

    def secret_file(self, name: str) -> Path:
        self.secret(name)
        return self.path / "secrets" / name

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the home for one supervisor; the kernel lets go when the process ends, however it ends."""
        with (self.path / "run" / "up.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                where = self.state().get("url", "an address it has not got yet")
                raise CannotStart(
                    f"Replay already runs on {self.path}, at {where}. "
                    "Use that one, stop it first, or set REPLAY_HOME to another folder."
                ) from None
            yield

    def is_held(self) -> bool:
        """Whether a supervisor runs on this home now."""
        try:
            with (self.path / "run" / "up.lock").open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def state(self) -> dict[str, Any]:
        """What the last supervisor wrote down: its address, its processes, its sockets, where its agents are."""
        try:
            state: dict[str, Any] = json.loads((self.path / "run" / "up.json").read_text())
        except (OSError, ValueError):
            return {}
        return state

    def remember(self, **facts: Any) -> None:
        """Add to what `state` answers."""
        write_private(self.path / "run" / "up.json", json.dumps(self.state() | facts, indent=1))

    def forget(self) -> None:
        """A clean stop leaves nothing to clean up."""
        (self.path / "run" / "up.json").unlink(missing_ok=True)

    def database_url(self, sockets: Path) -> str:
        """The address of the private PostgreSQL."""
        password = quote(self.secret("database_password"), safe="")
        return f"postgresql://replay:{password}@/replay?{urlencode({'host': sockets})}"

    def environment(self) -> dict[str, str]:
        """Addresses and secrets of this instance, its agents and its live model, for programs that were given none."""
        found = {}
        if (self.path / "secrets" / "secret_key").exists():
            found["SECRET_KEY"] = self.secret("secret_key")
        state = self.state()
        if "postgres_sockets" in state:
            found["DATABASE_URL"] = self.database_url(Path(state["postgres_sockets"]))
        if "redis_socket" in state:
            found["REDIS_URL"] = redis_url(Path(state["redis_socket"]))
        found.update(state.get("shared_settings", {}))
        return found


def redis_url(socket: Path) -> str:
    """The address of a Redis on a unix socket, as redis-py writes it."""
    return f"unix://{quote(str(socket))}"


def read_secret(file: Path) -> str:
    """Raises CannotStart, with what is wrong with the file."""
    try:
        text = file.read_text("ascii").strip()
    except OSError as error:
        raise CannotStart(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise CannotStart(f"{file} is damaged: it does not hold text. {_BRING_BACK}") from None
    if not text:
        raise CannotStart(f"{file} is empty. {_BRING_BACK}")
    return text


def write_private(file: Path, text: str) -> None:
    """Write a whole file that its owner alone may read, or leave the old one."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with open(draft, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(file)
