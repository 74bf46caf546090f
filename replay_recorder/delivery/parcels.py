"""Finished recordings on their way to the server."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from replay_recorder.delivery.locks import is_same_file, try_lock, unlock

if TYPE_CHECKING:
    from replay_recorder.delivery.spool import Spool


class Parcel(Protocol):
    """A recording that waits. Whoever takes it calls `release` in the end, whatever became of it."""

    name: str
    size: int
    """Bytes of its file; the record has about as many."""

    def take(self) -> bool:
        """Whether it is ours to send: no other process sends it, or has just done so, and its run is over."""

    def read(self) -> bytes: ...
    def remove(self) -> None: ...
    def refused(self, reason: str) -> None: ...
    def release(self) -> None:
        """Leave it where it is, for another try."""


class FileParcel:
    """A recording on disk, locked by this process while it is sent."""

    def __init__(self, spool: Spool, path: Path, size: int) -> None:
        self.name = path.name
        self.size = size
        self._spool = spool
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        try:
            self._descriptor = os.open(self._path, os.O_RDWR)
        except OSError:
            return False
        self._spool.hold(self)
        if try_lock(self._descriptor) and is_same_file(self._path, self._descriptor):
            return True
        self.abandon()
        return False

    def read(self) -> bytes:
        return self._path.read_bytes()

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
        self._spool.grew(-self.size)
        self.release()

    def refused(self, reason: str) -> None:
        target = self._spool.refused_folder / self.name
        os.replace(self._path, target)
        # On a full disk the run itself is worth more than the reason.
        with contextlib.suppress(OSError):
            target.with_suffix(".reason").write_text(reason + "\n", encoding="utf-8")
        self.release()

    def release(self) -> None:
        if self._descriptor is not None:
            unlock(self._descriptor)
            self.abandon()

    def abandon(self) -> None:
        """Close it and leave the lock, which is another process's."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class MemoryParcel:
    """A recording that no folder could hold."""

    def __init__(self, spool: Spool, kept: tuple[str, bytes]) -> None:
        self.name = kept[0]
        self.size = len(kept[1])
        self._spool = spool
        self._kept = kept

    def take(self) -> bool:
        return True

    def read(self) -> bytes:
        return self._kept[1]

    def remove(self) -> None:
        self._spool.forget(self._kept)

    def refused(self, reason: str) -> None:
        self._spool.losses.note(self.name, f"the server refused it ({reason})")
        self._spool.forget(self._kept)

    def release(self) -> None:
        return None
