"""Connections of web processes: a database that hangs is an error after some seconds, as one that is gone.

PostgreSQL's own timeouts, and those of TCP, do not fire where the server is stopped and its kernel goes on.
"""

from __future__ import annotations

from typing import Any, TypeVar

from psycopg import Connection, OperationalError
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

T = TypeVar("T")
_SECONDS = 7
"""For one statement. With the wait for a connection, an answer comes within ten."""


class PatientConnection(Connection[Any]):
    """Closed when an answer does not come, so that nobody waits for it again."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        try:
            return super().wait(gen, interval, timeout or _SECONDS)
        except OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise


def bound_waits(database: dict[str, Any]) -> None:
    """For a database of the settings that is reached through our pool."""
    if pool := database["OPTIONS"].get("pool"):
        pool["connection_class"] = PatientConnection
