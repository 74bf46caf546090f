"""Which pieces a trace under way has already, so that its next batch need not bring them again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from sessions_app.core.spans.packing import Pieces

_OF_A_TRACE = 10
"""Pieces that a trace takes the room of beside its own."""


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest batch of a trace: it tells the trace as it is from an earlier state of it."""

    position: int
    """How many batches the trace had with it."""
    digest: str
    received_at: datetime


class Known:
    """The pieces that were stored with a trace, rows or carried; only what is committed may be in it."""

    def __init__(self, trace: int, newest: Newest) -> None:
        self.trace = trace
        """Primary key of its row: a trace that was deleted and came again is another one."""
        self.newest = newest
        """Where it is stored, all batches before it are too: a trace without it was put back to an earlier state."""
        self._payloads: set[str] = set()
        self._nodes: set[str] = set()

    @property
    def cost(self) -> int:
        return _OF_A_TRACE + len(self._payloads) + len(self._nodes)

    def add(self, pieces: Pieces, newest: Newest) -> None:
        # First: another thread that sees the pieces has to see what speaks for them.
        if newest.position > self.newest.position:
            self.newest = newest
        self._payloads.update(pieces.payloads)
        self._nodes.update(pieces.nodes)

    def without(self, pieces: Pieces) -> Pieces:
        """Those that are new."""
        return Pieces(
            payloads={digest: piece for digest, piece in pieces.payloads.items() if digest not in self._payloads},
            nodes={node: link for node, link in pieces.nodes.items() if node not in self._nodes},
        )


class KnownTraces:
    """Remembers the traces that got something last, about so many pieces of them; for several threads."""

    def __init__(self, most: int) -> None:
        self._room = most
        self._lock = Lock()
        self._traces: OrderedDict[tuple[int, str], Known] = OrderedDict()

    def get(self, project: int, trace_id: str) -> Known | None:
        with self._lock:
            return self._traces.get((project, trace_id))

    def add(self, project: int, trace_id: str, *, trace: int, newest: Newest, pieces: Pieces) -> None:
        """Call it when the batch with these pieces is committed."""
        with self._lock:
            known = self._taken(project, trace_id)
            if known is None or known.trace != trace:
                known = Known(trace, newest)
            known.add(pieces, newest)
            self._traces[project, trace_id] = known
            self._room -= known.cost
            while self._room < 0:
                _, oldest = self._traces.popitem(last=False)
                self._room += oldest.cost

    def forget(self, project: int, trace_id: str) -> None:
        with self._lock:
            self._taken(project, trace_id)

    def _taken(self, project: int, trace_id: str) -> Known | None:
        known = self._traces.pop((project, trace_id), None)
        if known is not None:
            self._room += known.cost
        return known
