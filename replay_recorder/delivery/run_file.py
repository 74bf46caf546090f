"""The open recording of one run: on disk, or in memory where no folder can be written."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from replay_recorder.delivery.locks import unlock

if TYPE_CHECKING:
    from replay_recorder.delivery.spool import Spool


class RunFile:
    """Takes the events of one run until it is finished, discarded or abandoned; after that it takes none.

    Not safe for several threads by itself: whoever appends holds `lock`.
    """

    def __init__(self, spool: Spool, name: str) -> None:
        self.name = name
        self.size = 0
        self.lost: str | None = None
        """Why events are missing at its end; None while it is whole."""
        self.lock = threading.RLock()
        self.is_open = True
        self._spool = spool

    def append(self, text: str) -> None:
        """One event. Above a limit it is dropped, and so is everything after it."""
        if self.lost is not None or not self.is_open:
            return
        content = _utf8(text)
        reason = self._spool.refusal(self.size + len(content), len(content))
        if reason is None:
            self._keep(content)
        else:
            self._lose(reason)

    def append_last(self, text: str) -> None:
        """The few bytes that end a run; they are written also when a limit was reached, unless nothing was before."""
        if self.is_open and self.size:
            self._keep(_utf8(text))

    def _keep(self, content: bytes) -> None:
        try:
            self._store(content)
        except OSError as error:
            self._lose(f"the disk refused to write ({error.strerror})")
        else:
            self.size += len(content)
            self._spool.grew(len(content))

    def _lose(self, reason: str) -> None:
        if self.lost is None:
            self.lost = reason
            self._spool.losses.note(self.name, reason)

    def _store(self, content: bytes) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Hand it to the sender."""
        raise NotImplementedError

    def discard(self) -> None:
        """Forget the run: it is not in the sample."""
        raise NotImplementedError

    def abandon(self) -> None:
        """In a child process: the run belongs to the parent, and a lock may be held by a thread that is not here."""
        self.is_open = False
        self.lock = threading.RLock()


class DiskFile(RunFile):
    """A file in the folder `open`, locked as long as its run goes on."""

    def __init__(self, spool: Spool, path: Path, descriptor: int) -> None:
        super().__init__(spool, path.name)
        self._path = path
        self._descriptor = descriptor

    def _store(self, content: bytes) -> None:
        try:
            write_all(self._descriptor, content)
        except OSError:
            # Half a line would spoil the one after it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise

    def finish(self) -> None:
        if self.is_open:
            try:
                os.replace(self._path, self._spool.ready_folder / self.name)
            except OSError as error:
                self._lose(f"the spool cannot be written ({error.strerror})")
            finally:
                self._close()

    def discard(self) -> None:
        if self.is_open:
            try:
                self._path.unlink(missing_ok=True)
                self._spool.grew(-self.size)
            finally:
                self._close()

    def abandon(self) -> None:
        if self.is_open:
            # Not unlocked: the lock is the parent's.
            os.close(self._descriptor)
        super().abandon()

    def _close(self) -> None:
        self.is_open = False
        unlock(self._descriptor)
        os.close(self._descriptor)

    def __del__(self) -> None:
        """A run that nobody will end: without its lock it is found and sent as cut off."""
        if self.is_open:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)


class MemoryFile(RunFile):
    """Nothing of it survives the process."""

    def __init__(self, spool: Spool, name: str) -> None:
        super().__init__(spool, name)
        self._events: list[bytes] = []

    def _store(self, content: bytes) -> None:
        self._events.append(content)

    def finish(self) -> None:
        if self.is_open:
            self.is_open = False
            self._spool.keep_in_memory(self.name, b"".join(self._events))

    def discard(self) -> None:
        if self.is_open:
            self.is_open = False
            self._spool.grew(-self.size)


def write_all(descriptor: int, content: bytes) -> None:
    """One `write`, and more only where the system took less."""
    while content:
        content = content[os.write(descriptor, content) :]


def _utf8(text: str) -> bytes:
    """`json_text` lets no half surrogate pair through; one in JSON made elsewhere must not cost the event."""
    return text.encode("utf-8", "replace")
