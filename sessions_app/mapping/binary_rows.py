"""Many rows in one statement: their columns as arrays, in PostgreSQL's binary form where that is smaller than text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper

_BINARY = re.compile(r"(%\(\w+\))b")


@contextmanager
def binary_cursor() -> Iterator[CursorWrapper]:
    """A cursor on Django's connection that sends parameters apart from the statement; errors are those of Django, and
    whoever counts its queries counts these."""
    connection.ensure_connection()
    wrapper = _Logged if connection.queries_logged else CursorWrapper
    with psycopg.Cursor(connection.connection) as cursor:
        yield wrapper(cursor, connection)


class _Logged(CursorDebugWrapper):
    """Its statements are in the log with their parameters, as are those of Django's own cursors."""

    def debug_sql(
        self, sql: Any = None, params: Any = None, use_last_executed_query: bool = False, many: bool = False
    ) -> Any:
        # The statement that the cursor remembers has none.
        written = sql if many else self.db.ops.compose_sql(_BINARY.sub(r"\1s", sql), params)
        return super().debug_sql(written, params, many=many)
