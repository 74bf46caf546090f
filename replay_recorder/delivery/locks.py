"""Whether the process that wrote a file is still alive: it holds a lock on it, and the system lets go of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform == "win32":

    def try_lock(descriptor: int) -> bool:
        """There are no such locks here, and files that are open cannot be renamed: recordings stay in memory."""
        return False

    def unlock(descriptor: int) -> None:
        return None

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Take the file for this descriptor, or say that somebody else has it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Let go, also when a child process has inherited the descriptor."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_same_file(path: Path, descriptor: int) -> bool:
    """Whether the locked file is still the one of this name: whoever held the lock before may have removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False
