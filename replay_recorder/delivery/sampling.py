"""Which runs are kept: all that did not end well, and a share of the others that is the same in every process."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replay_recorder.writing.run_writer import RunWriter


def is_sampled(run_id: str, share: float) -> bool:
    """Whether a run belongs to the share; decided by SHA-256 of its id, so every process decides alike."""
    number = int.from_bytes(hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return number < share * 2**64


class Tree:
    """A run with the runs inside it: they are kept or dropped together, when the last of them has ended."""

    def __init__(self, root_id: str, share: float) -> None:
        self.root_id = root_id
        self.process = os.getpid()
        self._share = share
        self._open = 0
        self._ended: list[RunWriter] = []
        self._has_failed = False
        self._lock = threading.Lock()

    def begin(self, run: RunWriter) -> None:
        """A run that is killed is a failure, so that is what its recording says until it ends."""
        with self._lock:
            self._open += 1
        run.tree = self
        self._say_why(run, "failure")

    def end(self, run: RunWriter) -> list[RunWriter]:
        """The runs that can now be decided on; none while others go on."""
        with self._lock:
            self._open -= 1
            self._ended.append(run)
            self._has_failed = self._has_failed or run.failed
            if self._open > 0 and self._share < 1:
                return []
            decided, self._ended = self._ended, []
            return decided

    def keeps(self, run: RunWriter) -> bool:
        """Whether a run that was decided on stays, which its recording then says."""
        if self._has_failed or self._share >= 1:
            return True
        is_kept = is_sampled(self.root_id, self._share)
        if is_kept:
            self._say_why(run, "sample")
        return is_kept

    def _say_why(self, run: RunWriter, why: str) -> None:
        """A full recording needs no word about it."""
        if self._share < 1:
            said: dict[str, Any] = {"rate": self._share, "kept": why}
            run.put_last({"sampling": said})


def tree_of(run: RunWriter, parent: RunWriter | None, share: float) -> Tree:
    """The tree that a new run belongs to. What a child process inherited goes on in the parent process alone."""
    if parent is None or parent.tree is None:
        return Tree(run.run_id, share)
    return parent.tree if parent.tree.process == os.getpid() else Tree(parent.tree.root_id, share)
