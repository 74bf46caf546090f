"""Many rows in one statement: their columns as arrays, in PostgreSQL's binary form where that is smaller than text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

_BATCH = 1000


def insert_new(model: type[Model], columns: Mapping[str, list[Any]]) -> None:
    """Add rows, given column by column, in their order; those that are there already stay as they are."""
    statement = _insert(model, tuple(columns))
    count = len(next(iter(columns.values())))
    with binary_cursor() as cursor:
        for start in range(0, count, _BATCH):
            cursor.execute(statement, {name: values[start : start + _BATCH] for name, values in columns.items()})


@cache
def _insert(model: type[Model], names: tuple[str, ...]) -> str:
    of_model = {field.attname: field for field in model._meta.concrete_fields}
    fields = [of_model[name] for name in names]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    arrays = ", ".join(f"%({name})b::{field.db_type(connection)}[]" for name, field in zip(names, fields, strict=True))
    return f"INSERT INTO {model._meta.db_table} ({columns}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"


def known_digests(model: type[Model], project_id: int, digests: Iterable[str]) -> set[str]:
    """Those of the project that are stored, in hex."""
    wanted = list(map(bytes.fromhex, digests))
    if not wanted:
        return set()
    statement = f"SELECT digest FROM {model._meta.db_table} WHERE project_id = %(project)s AND digest = ANY(%(wanted)b)"
    with binary_cursor() as cursor:
        cursor.execute(statement, {"project": project_id, "wanted": wanted})
        return {bytes(digest).hex() for (digest,) in cursor.fetchall()}


@contextmanager
def binary_cursor() -> Iterator[CursorWrapper]:
    """A cursor on Django's connection that sends parameters apart from the statement; errors are those of Django."""
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        yield CursorWrapper(cursor, connection)
