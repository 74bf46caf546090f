"""Which pieces many traces have, such as instructions and tool definitions."""

from __future__ import annotations

from sessions_app.core.spans.remembered import RememberedPieces, cost

_TRACE_ID = b"-" * 32


class CommonPieces:
    """Remembers the first trace of each of the pieces seen last, about so many of them; for several threads."""

    def __init__(self, most: int) -> None:
        self._first = RememberedPieces(most * cost(_TRACE_ID))

    def is_common(self, digest: str, trace_id: str) -> bool:
        """Whether it came in another trace before."""
        trace = trace_id.encode()
        return self._first.put(digest.encode(), trace) != trace
