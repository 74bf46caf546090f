"""Many rows in one statement: their columns as arrays, in PostgreSQL's binary form where that is smaller than text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper


@contextmanager
def binary_cursor() -> Iterator[CursorWrapper]:
    """A cursor on Django's connection that sends parameters apart from the statement; errors are those of Django, and
    whoever counts its queries counts these."""
    connection.ensure_connection()
    wrapper = CursorDebugWrapper if connection.queries_logged else CursorWrapper
    with psycopg.Cursor(connection.connection) as cursor:
        yield wrapper(cursor, connection)
