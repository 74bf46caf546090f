"""What changed since a time, the oldest change first: for scripts that keep a copy of a list.

A row that changes while the list is read moves behind the cursor and comes again, so nothing is passed over. The
time of a row is older than the moment at which others see it, by as long as its transaction took: who asks again
overlaps.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from django.db.models import DateTimeField, Model, Q, QuerySet
from django.db.models.functions import Greatest

from sessions_app.queries.cursors import bad_cursor, spelled_cursor, text_of_cursor

_Row = TypeVar("_Row", bound=Model)
# Of those that are there: PostgreSQL passes over what is null.
OF_RUNS = Greatest("received_at", "trace__changed_at", "cold_case__marked_at", output_field=DateTimeField())
"""When it came, when the newest of its spans came, when it was marked as a cold case."""
OF_REPLAYS = Greatest("created_at", "claimed_at", "finished_at", output_field=DateTimeField())
"""When it was asked for, taken up, or ended. Progress and pauses have no time of their own."""


def changed_page(
    rows: QuerySet[_Row], changed: Greatest, since: datetime, cursor: str | None, limit: int
) -> tuple[list[_Row], str | None]:
    """The rows behind the cursor with their `changed_at`, and the next cursor. Raises `QueryError`."""
    changed_rows: QuerySet[Any] = rows.annotate(changed_at=changed).filter(changed_at__gte=since)
    if cursor:
        at, key = _read(cursor)
        changed_rows = changed_rows.filter(Q(changed_at__gt=at) | Q(changed_at=at, pk__gt=key))
    found = list(changed_rows.order_by("changed_at", "pk")[: limit + 1])
    return found[:limit], _cursor(found[limit - 1]) if len(found) > limit else None


def _cursor(row: Any) -> str:
    return spelled_cursor(f"{row.changed_at.isoformat()} {row.pk}")


def _read(cursor: str) -> tuple[datetime, int]:
    try:
        at, _, key = text_of_cursor(cursor).partition(" ")
        found = datetime.fromisoformat(at), int(key)
    except ValueError:
        raise bad_cursor(cursor) from None
    if found[0].tzinfo is None or not 0 <= found[1] < 2**63:
        raise bad_cursor(cursor)
    return found
