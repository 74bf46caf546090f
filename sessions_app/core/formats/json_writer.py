"""Writing JSON around slices that must stay byte-exact."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

from sessions_app.core.payload import JsonObject, JsonValue, compact_json


def object_text(fields: Iterable[tuple[str, bytes | None]], extra: JsonObject | None = None) -> bytes:
    """An object of the fields that are there, then the unknown ones as they came."""
    parts = [_key(name) + text for name, text in fields if text is not None]
    if extra:
        parts += [compact_json(name) + b":" + compact_json(value) for name, value in extra.items()]
    return b"{" + b",".join(parts) + b"}"


@lru_cache(maxsize=1024)
def _key(name: str) -> bytes:
    return compact_json(name) + b":"


def array_text(items: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def scalar(value: JsonValue) -> bytes | None:
    return None if value is None else compact_json(value)


def moment(value: datetime | None) -> bytes | None:
    return None if value is None else scalar(iso(value))


def iso(value: datetime) -> str:
    """ISO 8601 in UTC with microseconds, so that equal times have equal spellings."""
    return value.astimezone(UTC).isoformat(timespec="microseconds")
