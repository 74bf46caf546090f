"""Which runs are kept: all that failed, and a share of the others that is the same in every process."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field

from replay_recorder.json_text import JsonText, dumps
from replay_recorder.run_writer import RunWriter


def is_sampled(run_id: str, share: float) -> bool:
    """Whether a run belongs to the share; decided by SHA-256 of its id, so every process decides alike."""
    number = int.from_bytes(hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return number < share * 2**64


@dataclass
class Tree:
    """A run with the runs inside it: they are kept or dropped together, when the last of them has ended."""

    root_id: str
    share: float
    open: int = 0
    ended: list[RunWriter] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        with self.lock:
            self.open += 1

    def end(self, run: RunWriter) -> list[RunWriter] | None:
        """The runs that are now decided on, or None while others go on."""
        with self.lock:
            self.open -= 1
            self.ended.append(run)
            if self.open > 0 and self.share < 1:
                return None
            decided, self.ended = self.ended, []
            return decided

    def keeps(self, runs: list[RunWriter]) -> bool:
        return self.share >= 1 or any(run.failed for run in runs) or is_sampled(self.root_id, self.share)

    def note(self, run: RunWriter, runs: list[RunWriter]) -> None:
        """Write into the run why it was kept; a full recording needs no note."""
        if self.share < 1:
            kept = "failure" if any(each.failed for each in runs) else "sample"
            text = dumps({"rate": self.share, "kept": kept})
            run.file.append_last(f"0\tsampling\t{JsonText(text)}\n")
