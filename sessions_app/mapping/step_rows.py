"""Writing the rows of steps, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from django.db import connection

from sessions_app.mapping.details import write_details
from sessions_app.models import Run, Step

_COLUMNS = tuple(field.attname for field in Step._meta.concrete_fields if field.attname != "detail")
_COPY = "COPY {} ({}) FROM STDIN".format(Step._meta.db_table, ", ".join(f'"{name}"' for name in _COLUMNS))
_values = attrgetter(*_COLUMNS)
COLUMNS = tuple(f'"{name}"' for name in _COLUMNS if name != "run_id")
"""All but the run and the text, for SQL."""


def write_steps(run: Run, steps: Sequence[Step]) -> None:
    """Add the steps of a run that has none."""
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(_COPY) as copy:
        for step in steps:
            step.run = run
            copy.write_row(_values(step))
    write_details(run, ((step.index, bytes(step.detail)) for step in steps))
