"""What reading has in common in both encodings: limits that are checked while objects are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sessions_app.core.compare.strict import same_json
from sessions_app.core.otlp.errors import OtlpError, OtlpTooLarge
from sessions_app.core.otlp.limits import OtlpLimits
from sessions_app.core.otlp.schema import Field, Found, Kind, Message
from sessions_app.core.payload import JsonValue

_BLOCKS_PER_RECORD = 2
"""A sender may give every span a resource and a scope of its own."""


class Reader(ABC):
    """Reads the messages of one request."""

    def __init__(self, limits: OtlpLimits) -> None:
        self.limits = limits
        self.replaced = 0
        """Texts in which something that no text can hold became U+FFFD."""
        self._parts: Counter[Kind] = Counter()
        self._allowed = {
            Kind.RECORD: limits.max_records,
            Kind.BLOCK: limits.max_records * _BLOCKS_PER_RECORD,
        }

    @abstractmethod
    def read(self, message: Message, raw: Any) -> Found:
        """The fields of a message; its blocks and records are left as they came. Raises `OtlpError`."""

    def add(self, field: Field, found: Found, value: Any) -> None:
        """One more of a repeated field."""
        items = found[field.name]
        if field.kind in self._allowed:
            self._count_part(field)
        elif len(items) >= self.limits.max_items:
            raise OtlpError(f"there are more than {self.limits.max_items} {field.name}")
        if items:
            items.append(value)
        else:
            found[field.name] = [value]

    def check_level(self, level: int) -> None:
        if level > self.limits.max_depth:
            raise OtlpError(f"a value is nested deeper than {self.limits.max_depth} levels")

    def _count_part(self, field: Field) -> None:
        self._parts[field.kind] += 1
        allowed = self._allowed[field.kind]
        if self._parts[field.kind] > allowed:
            raise OtlpTooLarge(f"the request holds more than {allowed} {field.name}; send smaller batches")


def map_of(pairs: Iterable[tuple[str, JsonValue]]) -> JsonValue:
    """What a `KeyValueList` says. Where it gives a key two values nobody knows which one counts: it stays the list that
    it is."""
    said = list(pairs)
    found = dict(said)
    is_clear = len(found) == len(said) or all(same_json(value, found[key]) for key, value in said)
    return found if is_clear else [{"key": key, "value": value} for key, value in said]
