"""Writing the rows of steps, many at once."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from django.db import connection

from sessions_app.models import Run, Step
from sessions_app.payloads.compression import pack_object

_COLUMNS = tuple(field.attname for field in Step._meta.concrete_fields if not field.primary_key)
_COPY = "COPY {} ({}) FROM STDIN".format(Step._meta.db_table, ", ".join(f'"{name}"' for name in _COLUMNS))
_values = attrgetter(*_COLUMNS)
_DETAIL = _COLUMNS.index("detail")
COLUMNS = tuple(f'"{name}"' for name in _COLUMNS if name != "run_id")
"""All but the key and the run, for SQL."""


def write_steps(run: Run, steps: Iterable[Step]) -> None:
    """Add the steps of a run that has none."""
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(_COPY) as copy:
        for step in steps:
            step.run = run
            row = list(_values(step))
            row[_DETAIL] = pack_object(step.detail)  # COPY asks no field for its form in the database
            copy.write_row(row)
