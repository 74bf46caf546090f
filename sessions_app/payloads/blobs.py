"""A folder of blobs, each named by the SHA-256 of its bytes.

A blob is complete on disk before any row speaks of it: written beside its place, synced, renamed,
and the folder synced. A crash in between leaves a temporary file that nothing refers to.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_TEMPORARY = ".part-"


class BlobFolder:
    """Write once, read many; blobs of one project lie in one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, project_id: int, digest: str) -> Path:
        return self.root / str(project_id) / digest[:2] / digest

    def write(self, project_id: int, digest: str, content: bytes) -> None:
        target = self.path(project_id, digest)
        if target.exists():
            return
        for folder in (self.root, target.parent.parent, target.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=_TEMPORARY, delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, target)
        _sync_folder(target.parent)

    def read(self, project_id: int, digest: str) -> bytes | None:
        try:
            return self.path(project_id, digest).read_bytes()
        except FileNotFoundError:
            return None

    def has(self, project_id: int, digest: str) -> bool:
        return self.path(project_id, digest).exists()

    def delete(self, project_id: int, digest: str) -> None:
        self.path(project_id, digest).unlink(missing_ok=True)

    def digests(self, project_id: int, *, written_before: float) -> set[str]:
        """The complete blobs of a project that are older than this moment, in seconds since the epoch."""
        files = (self.root / str(project_id)).glob("*/*")
        return {file.name for file in files if not _is_temporary(file) and file.stat().st_mtime < written_before}

    def problem(self) -> str | None:
        """Why it cannot be used; looked at where it is, or will be made."""
        folder = self.root
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return None if os.access(folder, os.R_OK | os.W_OK | os.X_OK) else "not readable and writable"

    def projects(self) -> list[int]:
        """Ids of the projects that have blobs."""
        return sorted(int(path.name) for path in self.root.glob("*") if path.name.isdecimal())

    def leftovers(self, *, written_before: float) -> list[Path]:
        """Temporary files of writes that never finished, likewise."""
        return [file for file in self.root.glob(f"*/*/{_TEMPORARY}*") if file.stat().st_mtime < written_before]


def _is_temporary(file: Path) -> bool:
    return file.name.startswith(_TEMPORARY)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
