"""Moments as products write them in their exports and attributes."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.span import nanoseconds_of

_SECONDS_FROM_1973_ON = 100_000_000
"""Below it a number counts nothing that a recording could mean; its thousandfolds part the units from each other."""


def nanoseconds(value: JsonValue) -> int | None:
    """Nanoseconds since 1970 of a text in ISO 8601 (UTC where it has no offset), or of a number of seconds,
    milliseconds, microseconds or nanoseconds, told apart by their size; None where it is no such moment."""
    if isinstance(value, str):
        return _of_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _of_number(value)


def _of_text(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return _positive(nanoseconds_of(moment))
    except (ValueError, OverflowError):
        return None


def _of_number(number: float) -> int | None:
    if isinstance(number, float) and not math.isfinite(number):
        return None
    for scale in (1_000_000_000, 1_000_000, 1_000, 1):
        if _SECONDS_FROM_1973_ON <= number * scale // 1_000_000_000 < _SECONDS_FROM_1973_ON * 1000:
            return _positive(int(number * scale))
    return None


def _positive(number: int) -> int | None:
    return number if number > 0 else None
