"""Times as people type them: ISO 8601, a time of today, or a day by its name."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from sessions_app.core.errors import QueryError

_DAYS = {"today": 0, "yesterday": 1}
_OF_DAY = re.compile(r"(?:(today|yesterday)\s*)?(\d{1,2}:\d{2}(?::\d{2})?)?", re.IGNORECASE)


def read_time(name: str, text: str, now: datetime, zone: tzinfo) -> datetime | None:
    """In UTC; without an offset it is in the zone. None where nothing is typed. Raises `QueryError`."""
    if not text:
        return None
    try:
        read = _of_day(text, now.astimezone(zone)) or datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        examples = "2026-11-21T08:30Z, 2026-11-21 08:30, 08:30, today or yesterday"
        raise QueryError(f"{name} is a time as {examples}.", part=f"{name}={text}") from None


def _of_day(text: str, now: datetime) -> datetime | None:
    """`14:30`, `today`, `yesterday 9:05`."""
    found = _OF_DAY.fullmatch(text)
    if found is None:
        return None
    day, at = found.groups()
    hour, _, rest = (at or "00:00").partition(":")
    clock = time.fromisoformat(f"{hour:0>2}:{rest}")
    date = now.date() - timedelta(days=_DAYS[(day or "today").lower()])
    return datetime.combine(date, clock, tzinfo=now.tzinfo)


def spelled_time(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""
