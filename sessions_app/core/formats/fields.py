"""Typed reading of one JSON object, field by field, with errors that name the path.

Values that must stay byte-exact are taken as slices of the document and not re-spelled. Whatever a
parser did not ask for is handed back by `rest`, so that unknown fields are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar, get_args

import msgspec

from sessions_app.core.errors import RecordError
from sessions_app.core.payload import JsonObject, JsonValue, json_value

T = TypeVar("T")
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_MAX_ID = 512
MAX_NAME = 1024
_MAX_INTEGER = 2**53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def names_of(literal: Any) -> tuple[str, ...]:
    """The strings that a `Literal` type allows."""
    return get_args(literal)


def as_object(slice_: bytes, path: str) -> dict[str, bytes]:
    try:
        return {key: bytes(raw) for key, raw in _OBJECT.decode(slice_).items()}
    except msgspec.ValidationError:
        raise RecordError(f"{path}: expected an object.", field=path) from None


def as_array(slice_: bytes, path: str) -> list[bytes]:
    try:
        return [bytes(raw) for raw in _ARRAY.decode(slice_)]
    except msgspec.ValidationError:
        raise RecordError(f"{path}: expected a list.", field=path) from None


_SHORT = 64
"""Bytes. Names and kinds come again in step after step."""
_short_text = lru_cache(maxsize=4096)(json_value)


class Fields:
    """The fields of one object in a document; `path` is where the object stands (`steps[2]`)."""

    def __init__(self, slice_: bytes, path: str = "") -> None:
        self.path = path
        self._raw = as_object(slice_, path or "the document")
        self._read: set[str] = set()

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        return self._raw.get(name, b"null") != b"null"

    def names(self) -> list[str]:
        """All field names, in the order of the document."""
        return list(self._raw)

    def slice(self, name: str) -> bytes | None:
        """The exact JSON text of a field; None when absent or null."""
        raw = self._raw.get(name)
        if raw is None:
            return None
        self._read.add(name)
        return None if raw == b"null" else raw

    def written(self, name: str) -> bytes | None:
        """Like `slice`, but a null that was written is a value: a tool may answer null."""
        self._read.add(name)
        return self._raw.get(name)

    def value(self, name: str) -> JsonValue:
        raw = self.slice(name)
        if raw is None:
            return None
        return _short_text(raw) if len(raw) < _SHORT and raw[:1] == b'"' else json_value(raw)

    def text(self, name: str, *, limit: int | None = None) -> str | None:
        value = self._typed(name, str, "a string")
        if value is not None and limit is not None and len(value) > limit:
            raise self.error(name, f"is longer than {limit} characters")
        return value

    def name(self, name: str) -> str | None:
        """A short text that is shown and indexed; control characters have no place in it."""
        if name not in self._raw:
            return None  # as mostly: a step may have a dozen names and has one or two
        value = self.text(name, limit=MAX_NAME)
        if value is not None and not is_name(value):
            raise self.error(name, "must not hold a NUL character")
        return value

    def identifier(self, name: str) -> str | None:
        value = self.text(name, limit=_MAX_ID)
        if value is not None and not is_identifier(value):
            raise self.error(name, "must not be blank or hold control characters")
        return value

    def required(self, name: str, read: Callable[[str], T | None]) -> T:
        value = read(name)
        if value is None:
            raise self.error(name, "is required")
        return value

    def number(self, name: str) -> float | None:
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
            raise self.error(name, "must be a number")
        return value

    def integer(self, name: str, *, low: int = 0, high: int = _MAX_INTEGER) -> int | None:
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(name, "must be a whole number")
        if not low <= value <= high:
            raise self.error(name, f"must be between {low} and {high}")
        return value

    def boolean(self, name: str) -> bool | None:
        return self._typed(name, bool, "true or false")

    def object(self, name: str) -> JsonObject | None:
        return self._typed(name, dict, "an object")

    def time(self, name: str) -> datetime | None:
        """ISO 8601 with or without offset, or Unix seconds; without offset it is read as UTC."""
        value = self.value(name)
        if value is None:
            return None
        try:
            return parse_time(value)
        except (TypeError, ValueError, OverflowError):
            raise self.error(name, "must be a time in ISO 8601") from None

    def choice(self, name: str, allowed: tuple[str, ...]) -> Any:
        value = self.text(name)
        if value is not None and value not in allowed:
            raise self.error(name, f"must be one of {', '.join(allowed)}")
        return value

    def child(self, name: str) -> Fields | None:
        raw = self.slice(name)
        return None if raw is None else Fields(raw, self.at(name))

    def items(self, name: str) -> list[bytes] | None:
        raw = self.slice(name)
        return None if raw is None else as_array(raw, self.at(name))

    def children(self, name: str) -> Iterator[Fields] | None:
        """One after the other: each takes some kilobytes, and a list may hold very many."""
        items = self.items(name)
        if items is None:
            return None
        return (Fields(raw, f"{self.at(name)}[{i}]") for i, raw in enumerate(items))

    def rest(self) -> JsonObject:
        """The fields that nobody asked for."""
        return {key: json_value(raw) for key, raw in self._raw.items() if key not in self._read}

    def refuse_rest(self) -> None:
        """For small objects that have no place to keep what is unknown: better refused than lost."""
        for name in self._raw:
            if name not in self._read:
                raise self.error(name, "is not a field of this object")

    def error(self, name: str, what: str) -> RecordError:
        return RecordError(f"{self.at(name)} {what}.", field=self.at(name))

    def _typed(self, name: str, kind: type[T], words: str) -> T | None:
        value = self.value(name)
        if value is not None and not isinstance(value, kind):
            raise self.error(name, f"must be {words}")
        return value


def is_name(value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME and "\x00" not in value


def is_identifier(value: JsonValue) -> bool:
    is_short = isinstance(value, str) and len(value) <= _MAX_ID
    return is_short and bool(value.strip()) and all(ord(c) >= 32 for c in value)


def is_count(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_INTEGER


def parse_time(value: JsonValue) -> datetime:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _EPOCH + timedelta(seconds=value)
    moment = datetime.fromisoformat(value)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
