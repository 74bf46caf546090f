"""The folder of recordings that are not delivered yet: append-only files, one for each run.

    open/     runs that are being recorded; their process holds a lock on them
    ready/    runs that have ended, waiting for the sender
    refused/  runs that the server did not take, each with a file that says why
    lost.log  runs that could not be kept, one line each

A file is written with one `write` for each event and no buffer, so a process that is killed loses the event
that it was about to write. Its open files are found by the next sender and sent as cut off.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from replay_recorder.guard import logger
from replay_recorder.locks import try_lock
from replay_recorder.settings import Settings

_SCAN_EVERY = 2.0
_MAX_LOG_BYTES = 1024 * 1024


class Parcel(Protocol):
    """A finished recording on its way."""

    name: str

    def read(self) -> bytes: ...
    def delivered(self) -> None: ...
    def refused(self, reason: str) -> None: ...
    def release(self) -> None:
        """Leave it where it is, for another try."""


class Losses:
    """How many runs could not be kept, by reason."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, run: str, reason: str) -> None:
        with self._lock:
            self._counts[reason] += 1
            is_first = self._counts[reason] == 1
        if is_first:
            logger.warning("A run was not recorded whole: %s. Further ones are counted and not logged.", reason)
        try:
            self._append(f"{datetime.now(timezone.utc).isoformat()} {run} {reason}\n")
        except OSError:
            pass  # Counted in any case.

    def _append(self, line: str) -> None:
        if not self._log.exists() or self._log.stat().st_size < _MAX_LOG_BYTES:
            with self._log.open("a", encoding="utf-8") as log:
                log.write(line)

    @property
    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)


class RunFile:
    """The open recording of one run. `is_whole` turns false when something could not be written."""

    def __init__(self, spool: Spool, name: str, descriptor: int | None) -> None:
        self.name = name
        self.size = 0
        self.lost: str | None = None
        self._spool = spool
        self._descriptor = descriptor
        self._memory: list[bytes] = []

    def append(self, text: str) -> None:
        """One event. Above a limit it is dropped, and so is everything after it."""
        if self.lost is not None:
            return
        content = text.encode()
        reason = self._spool.refusal(self.size + len(content), len(content))
        if reason is not None:
            self.lose(reason)
            return
        self._write(content)

    def append_last(self, text: str) -> None:
        """The few bytes that end a run; they are written also when a limit was reached."""
        self._write(text.encode())

    def lose(self, reason: str) -> None:
        if self.lost is None:
            self.lost = reason
            self._spool.losses.note(self.name, reason)

    def _write(self, content: bytes) -> None:
        if self._descriptor is None:
            self._memory.append(content)
        else:
            try:
                _write_all(self._descriptor, content)
            except OSError as error:
                self.lose(f"the disk refused to write ({error.strerror})")
                return
        self.size += len(content)
        self._spool.grew(len(content))

    def finish(self) -> None:
        """Hand it to the sender."""
        if self._descriptor is None:
            self._spool.keep_in_memory(self.name, b"".join(self._memory))
            return
        os.replace(self._spool.open_folder / self.name, self._spool.ready_folder / self.name)
        self._close()

    def discard(self) -> None:
        """Forget the run: it was not in the sample."""
        self._spool.grew(-self.size)
        if self._descriptor is not None:
            (self._spool.open_folder / self.name).unlink(missing_ok=True)
            self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


class Spool:
    """All undelivered recordings of one destination, shared by every process that sends there."""

    def __init__(self, settings: Settings) -> None:
        self.folder = settings.folder
        self.open_folder = self.folder / "open"
        self.ready_folder = self.folder / "ready"
        self.refused_folder = self.folder / "refused"
        self.losses = Losses(self.folder / "lost.log")
        self._max_run = settings.max_run_bytes
        self._memory: deque[tuple[str, bytes]] = deque()
        self._lock = threading.Lock()
        self._used = 0
        self._scanned_at = 0.0
        self.is_on_disk = self._make_folders()
        self._max_bytes = settings.max_spool_bytes if self.is_on_disk else settings.max_memory_bytes

    def _make_folders(self) -> bool:
        try:
            for folder in (self.folder, self.open_folder, self.ready_folder, self.refused_folder):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = self.open_folder / f".probe-{os.getpid()}-{threading.get_ident()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            logger.warning("%s cannot be written (%s); recordings are kept in memory.", self.folder, error.strerror)
            return False
        return True

    # --- writing

    def create(self, name: str) -> RunFile | None:
        """A file for a new run; None above the limit, which is counted."""
        if self._usage() >= self._max_bytes:
            self.losses.note(name, self._limit_words())
            return None
        if not self.is_on_disk:
            return RunFile(self, name, None)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        hidden = self.open_folder / f".{name}.new"
        try:
            descriptor = os.open(hidden, flags, 0o600)
            # Locked before it has its name: an open file without a lock is one whose process is gone.
            try_lock(descriptor)
            os.replace(hidden, self.open_folder / name)
        except OSError as error:
            self.losses.note(name, f"the spool cannot be written ({error.strerror})")
            return None
        return RunFile(self, name, descriptor)

    def refusal(self, run_bytes: int, added: int) -> str | None:
        """Why these bytes cannot be kept."""
        if run_bytes > self._max_run:
            return f"the run is longer than {self._max_run} bytes"
        if self._usage() + added > self._max_bytes:
            return self._limit_words()
        return None

    def _limit_words(self) -> str:
        place = "spool" if self.is_on_disk else "memory"
        return f"the {place} is full ({self._max_bytes} bytes)"

    def grew(self, added: int) -> None:
        with self._lock:
            self._used += added

    def _usage(self) -> int:
        """Bytes in use: what this process wrote since the last look at the folder, on top of that look."""
        now = time.monotonic()
        if self.is_on_disk and (now - self._scanned_at > _SCAN_EVERY or self._scanned_at == 0):
            used = sum(_sizes(self.open_folder)) + sum(_sizes(self.ready_folder))
            with self._lock:
                self._used, self._scanned_at = used, now
        return self._used

    def keep_in_memory(self, name: str, content: bytes) -> None:
        with self._lock:
            self._memory.append((name, content))

    # --- reading

    def parcels(self) -> Iterator[Parcel]:
        """Everything that waits, oldest first, each taken so that no other process sends it meanwhile."""
        for path in self.orphans() + sorted(_files(self.ready_folder)):
            parcel = _take(self, path)
            if parcel is not None:
                yield parcel
        for kept in list(self._memory):
            yield MemoryParcel(self, kept)

    def orphans(self) -> list[Path]:
        """Runs whose process is gone; their names begin with the time, so this is their order."""
        return [path for path in sorted(_files(self.open_folder)) if _is_orphan(path)]

    def after_fork(self) -> None:
        """The lock may have been held by a thread that the child does not have."""
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        return len(list(_files(self.ready_folder))) + len(self._memory)

    def forget(self, kept: tuple[str, bytes]) -> None:
        with self._lock:
            if kept in self._memory:
                self._memory.remove(kept)
                self._used -= len(kept[1])


class FileParcel:
    """A recording on disk, locked by this process while it is sent."""

    def __init__(self, spool: Spool, path: Path, descriptor: int) -> None:
        self.name = path.name
        self._spool = spool
        self._path = path
        self._descriptor = descriptor

    def read(self) -> bytes:
        return self._path.read_bytes()

    def delivered(self) -> None:
        self._path.unlink(missing_ok=True)
        self.release()

    def refused(self, reason: str) -> None:
        target = self._spool.refused_folder / self.name
        os.replace(self._path, target)
        target.with_suffix(".reason").write_text(reason + "\n", encoding="utf-8")
        self.release()

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class MemoryParcel:
    """A recording that no folder could hold."""

    def __init__(self, spool: Spool, kept: tuple[str, bytes]) -> None:
        self.name = kept[0]
        self._spool = spool
        self._kept = kept

    def read(self) -> bytes:
        return self._kept[1]

    def delivered(self) -> None:
        self._spool.forget(self._kept)

    def refused(self, reason: str) -> None:
        self._spool.losses.note(self.name, f"the server refused it: {reason}")
        self._spool.forget(self._kept)

    def release(self) -> None:
        return None


def _take(spool: Spool, path: Path) -> FileParcel | None:
    """Lock a file, unless another process sends it or has just done so."""
    try:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    if try_lock(descriptor) and _is_same_file(path, descriptor):
        return FileParcel(spool, path, descriptor)
    os.close(descriptor)
    return None


def _is_same_file(path: Path, descriptor: int) -> bool:
    """Whoever held the lock before may have delivered and removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


def _is_orphan(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return try_lock(descriptor)
    finally:
        os.close(descriptor)


def _files(folder: Path) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(".run") and entry.is_file():
            yield Path(entry.path)


def _sizes(folder: Path) -> Iterator[int]:
    for path in _files(folder):
        try:
            yield path.stat().st_size
        except OSError:
            continue
