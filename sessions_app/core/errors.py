"""The error tree of the product. The doors turn these into status codes and exit codes."""

from __future__ import annotations

from sessions_app.core.packed_nodes import Reference, name_of


class ReplayProductError(Exception):
    """Base of every error that this product raises on purpose."""


class RecordError(ReplayProductError):
    """A recording cannot be read; `field` is a JSON path such as `steps[2].kind`."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class RecordTooLarge(RecordError):
    """A recording is larger, deeper or more numerous than the limits allow."""


class RunConflict(ReplayProductError):
    """A finished run is already stored under this id with other content."""

    def __init__(self, run_id: str, *, pieces: str | None = None) -> None:
        """`pieces` are what a run is sent as in one list, such as checkpoints."""
        advice = f" Delete that run and send all its {pieces} together, as one list." if pieces else ""
        super().__init__(f"Run {run_id!r} is already stored with different content.{advice}")
        self.run_id = run_id


class QueryError(ReplayProductError):
    """A part of a search query cannot be understood; `part` is that part as it was written, and `instead` what may have
    been meant."""

    def __init__(self, message: str, *, part: str, instead: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.part = part
        self.instead = instead
        self.others: tuple[QueryError, ...] = ()
        """Of the same query, what else cannot be understood."""


class NotReplayable(ReplayProductError):
    """A replay was asked for that this run can never give."""


class StillRunning(NotReplayable):
    """The run has not ended: the rest of it may still arrive."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id!r} has not ended; a replay or a fork needs the whole run. Ask again later.")


class LeaseLost(ReplayProductError):
    """Another worker has taken this replay over; a result under the old fence is refused."""


class StoredBytesMissing(ReplayProductError):
    """Stored bytes that a row refers to are gone, or are not what was written; `name` says which."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(words)
        self.name = name


class HeaderMissing(StoredBytesMissing):
    """All facts of a run but its steps and histories."""

    def __init__(self) -> None:
        super().__init__("header", "The stored header of the run is missing or damaged.")


class StepMissing(StoredBytesMissing):
    """What was recorded of a step, though its row is there."""

    def __init__(self, index: int) -> None:
        super().__init__(f"step {index}", f"What was recorded of step {index} is missing or damaged.")
        self.index = index


class PayloadMissing(StoredBytesMissing):
    """A payload, or a message of a history."""

    def __init__(self, reference: Reference) -> None:
        name = name_of(reference)
        super().__init__(name, f"The stored payload {name} is missing or damaged.")


class HistoryMissing(StoredBytesMissing):
    """The links of a run's message histories."""

    def __init__(self) -> None:
        super().__init__("message history", "The stored message history of the run is missing or damaged.")


class SpansMissing(StoredBytesMissing):
    """Spans that came together."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest, f"The stored spans {digest} are damaged.")
