"""Writing the rows of steps, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from django.db import connection

from sessions_app.mapping.details import write_details
from sessions_app.models import RunContent, Step

StepRow = tuple[Step, bytes]
"""A step's row, and its text."""
_COLUMNS = tuple(field.attname for field in Step._meta.concrete_fields)
_COPY = "COPY {} ({}) FROM STDIN".format(Step._meta.db_table, ", ".join(f'"{name}"' for name in _COLUMNS))
_values = attrgetter(*_COLUMNS)


def write_steps(content: RunContent, steps: Sequence[StepRow]) -> None:
    """Add the steps of a content that has none of its own."""
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(_COPY) as copy:
        for step, _ in steps:
            step.content = content
            copy.write_row(_values(step))
    write_details(content, ((step.index, text) for step, text in steps))
