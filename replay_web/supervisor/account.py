"""Whom the private services run as, and a folder where they may read and write.

PostgreSQL refuses to run as root. Started by root, it runs as `nobody`; then everything it reads
must lie where `nobody` can get to, and no folder of anybody else is opened up for that.
"""

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from replay_web.supervisor.errors import CannotStart
from replay_web.supervisor.home import Home

STATE_FOLDER = Path("/var/lib")
SOCKET_PATH_LIMIT = 107  # bytes, of the kernel's sockaddr_un
LONGEST_SOCKET_NAME = len("/.s.PGSQL.5432.lock")


class RunAs(TypedDict, total=False):
    """Arguments of subprocess."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group of the machine."""

    uid: int
    gid: int

    @classmethod
    def for_services(cls) -> "Account":
        """Ourselves, or `nobody` when we are root."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid)

    @property
    def is_other(self) -> bool:
        return self.uid != os.geteuid()

    def can(self, right: str, path: Path) -> bool:
        """Ask the kernel, as that user: `right` is r, w or x."""
        command = ["test", f"-{right}", str(path)]
        return subprocess.run(command, cwd="/", **self.as_options()).returncode == 0

    def as_options(self) -> RunAs:
        """For subprocess: run as this user, without our groups."""
        if not self.is_other:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def make_folder(self, path: Path) -> Path:
        """A folder of this user alone."""
        path.mkdir(mode=0o700, exist_ok=True)
        if self.is_other:
            os.chown(path, self.uid, self.gid)
        return path

    def readable(self, root: Path, names: Sequence[str], copies: Path) -> Path:
        """`root` where this user can read these below it, else a folder with copies of them."""
        if all(self.can("r", path) for name in names for path in some_files(root / name)):
            return root
        if not copies.exists():
            copy_readable(root, names, copies)
        return copies


def some_files(path: Path) -> list[Path]:
    """Enough of a folder to tell whether it was installed readable."""
    files = sorted(found for found in path.rglob("*") if found.is_file())
    return [files[0], files[-1]] if files else [path]


def copy_readable(root: Path, names: Sequence[str], copies: Path) -> None:
    """Copy files or folders so that everybody may read them; all, or nothing."""
    copies.parent.mkdir(mode=0o755, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".copy-", dir=copies.parent))
    for name in names:
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, draft / name)
    for path in (copies.parent, draft, *draft.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
    draft.replace(copies)


def services_folder(home: Home, account: Account) -> Path:
    """Where the private services keep their data: in the home, or beside it when they cannot get there."""
    if home.services.is_symlink() and not home.services.exists():
        raise CannotStart(
            f"The data of this instance was in {home.services.readlink()}, which is gone. "
            f"Bring it back, or remove {home.services} to begin anew."
        )
    if not home.services.exists():
        if account.can("x", home.path):
            home.services.mkdir()
        else:
            parent = STATE_FOLDER if os.access(STATE_FOLDER, os.W_OK) else None
            home.services.symlink_to(tempfile.mkdtemp(prefix="replay-", dir=parent))
        home.services.chmod(0o711 if account.is_other else 0o700)
    return home.services.resolve()


def socket_folder(services: Path, account: Account) -> Path:
    """A folder for sockets that only the services' user may enter, with a path that is short enough."""
    folder = services / "sockets"
    if len(os.fsencode(folder)) + LONGEST_SOCKET_NAME > SOCKET_PATH_LIMIT:
        folder = Path(tempfile.mkdtemp(prefix="replay-", dir="/tmp"))  # TMPDIR may be long
    return account.make_folder(folder)
