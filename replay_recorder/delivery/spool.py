"""The folder of recordings that are not delivered yet: append-only files, one for each run.

    open/     runs that are being recorded; their process holds a lock on them
    ready/    runs that have ended, waiting for the sender
    refused/  runs that the server did not take, each with a file that says why
    lost.log  runs that could not be kept, one line each

A file is written with one `write` for each event and no buffer, so a process that is killed loses the event
that it was about to write. Its open files are found by the next sender and sent as cut off.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from replay_recorder.delivery.locks import try_lock
from replay_recorder.delivery.losses import Losses
from replay_recorder.delivery.parcels import FileParcel, MemoryParcel, Parcel
from replay_recorder.delivery.run_file import DiskFile, MemoryFile, RunFile
from replay_recorder.guard import logger
from replay_recorder.settings import Settings

_MEASURE_EVERY = 60.0
"""Seconds between looks at what other processes have put into the folder, where no sender looks."""
_REFUSED_SHARE = 4
"""Refused recordings may take one part in four of the space; the oldest make room."""


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
        self._held: weakref.WeakSet[RunFile | FileParcel] = weakref.WeakSet()
        """What a child process inherits, and must leave to its parent."""
        self.is_on_disk = self._is_usable()
        self._max_bytes = settings.max_spool_bytes if self.is_on_disk else settings.max_memory_bytes
        self._used = 0
        self.measure()

    def _is_usable(self) -> bool:
        probe = self.open_folder / f".probe-{os.getpid()}-{threading.get_ident()}"
        try:
            self._make_folders()
            with probe.open("wb") as file:
                is_locked = try_lock(file.fileno())
            probe.unlink()
        except OSError as error:
            logger.warning("%s cannot be written (%s); recordings are kept in memory.", self.folder, error.strerror)
            return False
        if not is_locked:
            logger.warning("Files in %s cannot be locked; recordings are kept in memory.", self.folder)
        return is_locked

    def _make_folders(self) -> None:
        for folder in (self.folder, self.open_folder, self.ready_folder, self.refused_folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    # --- writing

    def create(self, name: str) -> RunFile | None:
        """A file for a new run; None when it cannot be kept, which is counted."""
        if time.monotonic() - self._measured_at > _MEASURE_EVERY:
            self.measure()
        if self._used >= self._max_bytes:
            self.losses.note(name, self._limit_words())
            return None
        try:
            file = self._new_file(name)
        except OSError as error:
            self.losses.note(name, f"the spool cannot be written ({error.strerror})")
            return None
        self.hold(file)
        return file

    def _new_file(self, name: str) -> RunFile:
        if not self.is_on_disk:
            return MemoryFile(self, name)
        return DiskFile(self, self.open_folder / name, self._open_new(name))

    def _open_new(self, name: str) -> int:
        """A descriptor with a lock. The file gets its name last: one without a lock is one whose process is gone."""
        hidden = self.open_folder / f".{name}.new"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        try:
            descriptor = os.open(hidden, flags, 0o600)
        except FileNotFoundError:
            # Somebody has cleaned up.
            self._make_folders()
            descriptor = os.open(hidden, flags, 0o600)
        try_lock(descriptor)
        try:
            os.replace(hidden, self.open_folder / name)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def refusal(self, run_bytes: int, added: int) -> str | None:
        """Why these bytes cannot be kept."""
        if run_bytes > self._max_run:
            return f"the run is longer than {self._max_run} bytes"
        if self._used + added > self._max_bytes:
            return self._limit_words()
        return None

    def _limit_words(self) -> str:
        place = "spool" if self.is_on_disk else "memory"
        return f"the {place} is full ({self._max_bytes} bytes)"

    def grew(self, added: int) -> None:
        with self._lock:
            self._used += added

    def measure(self) -> None:
        """Look how much is there; between two looks only what this process adds is known."""
        if self.is_on_disk:
            self._trim_refused()
            folders = (self.open_folder, self.ready_folder, self.refused_folder)
            self._used = sum(size for folder in folders for size in _sizes(folder).values())
        self._measured_at = time.monotonic()

    def _trim_refused(self) -> None:
        sizes = _sizes(self.refused_folder)
        excess = sum(sizes.values()) - self._max_bytes // _REFUSED_SHARE
        for path in sorted(sizes):
            if excess <= 0:
                break
            excess -= sizes[path]
            with contextlib.suppress(OSError):
                path.unlink()
                self.losses.note(path.name, "the server refused it, and it made room for others")
                path.with_suffix(".reason").unlink()

    def keep_in_memory(self, name: str, content: bytes) -> None:
        self._memory.append((name, content))

    def give_up_memory(self) -> None:
        """The process ends, and nothing else could keep these."""
        while self._memory:
            self.losses.note(self._memory.popleft()[0], "it was kept in memory and could not be delivered in time")

    # --- reading

    def parcels(self, last: Mapping[str, int]) -> Iterator[Parcel]:
        """Everything that waits, oldest first; also runs that go on, which nobody can take.

        Those whose names are in `last` come in the end, in the order of their numbers.
        """
        sizes = _sizes(self.open_folder) | _sizes(self.ready_folder)
        for path in sorted(sizes, key=lambda path: (last.get(path.name, -1), path.name)):
            yield FileParcel(self, path, sizes[path])
        for kept in list(self._memory):
            yield MemoryParcel(self, kept)

    def hold(self, held: RunFile | FileParcel) -> None:
        """A child process that inherits it abandons it."""
        self._held.add(held)

    @property
    def waiting(self) -> int:
        """Runs that have ended and are not delivered."""
        return len(_files(self.ready_folder)) + len(self._memory)

    def forget(self, kept: tuple[str, bytes]) -> None:
        self._memory.remove(kept)
        self.grew(-len(kept[1]))

    # --- the process

    def after_fork(self) -> None:
        """What is open or in memory is the parent's."""
        self._lock = threading.Lock()
        self.losses.after_fork()
        self._memory.clear()
        for held in list(self._held):
            held.abandon()
        self._held.clear()


def is_spool(folder: Path) -> bool:
    """Whether the folder is one of these; nothing is written."""
    return (folder / "open").is_dir() or (folder / "ready").is_dir()


def _files(folder: Path) -> list[Path]:
    """The recordings in a folder; none where there is no folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [folder / name for name in names if name.endswith(".run") and not name.startswith(".")]


def _sizes(folder: Path) -> dict[Path, int]:
    """The same with their bytes, without those that another process has just delivered."""
    found = {}
    for path in _files(folder):
        with contextlib.suppress(OSError):
            found[path] = path.stat().st_size
    return found
