"""Tolerant reading of exported objects: products add and rename fields, so that only what a span needs is demanded."""

from __future__ import annotations

from sessions_app.core.embedded_json import parsed
from sessions_app.core.errors import RecordError
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.times import nanoseconds


class Entry:
    """One object of an export; `path` is where it stands, such as `observations[2]`.

    Several names are spellings of one field: the first that is there and not null counts.
    """

    def __init__(self, value: JsonValue, path: str) -> None:
        if not isinstance(value, dict):
            raise RecordError(f"{path or 'the document'}: expected an object.", field=path or None)
        self.path = path
        self._value = value
        self._read: set[str] = set()

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def value(self, *names: str) -> JsonValue:
        self._read.update(names)
        return next((value for name in names if (value := self._value.get(name)) is not None), None)

    def text(self, *names: str) -> str | None:
        value = self.value(*names)
        return value if isinstance(value, str) and value else None

    def required(self, *names: str) -> str:
        found = self.text(*names)
        if found is None:
            raise RecordError(f"{self.at(names[0])} is required, as a text.", field=self.at(names[0]))
        return found

    def object(self, *names: str) -> JsonObject | None:
        """Also where it is JSON inside a text, as in files made of tables."""
        value = parsed(self.value(*names))
        return value if isinstance(value, dict) else None

    def list(self, *names: str) -> list[JsonValue]:
        value = parsed(self.value(*names))
        return value if isinstance(value, list) else []

    def time(self, *names: str) -> int | None:
        """Nanoseconds since 1970."""
        value = self.value(*names)
        found = nanoseconds(value)
        if value is not None and found is None:
            raise RecordError(f"{self.at(names[0])} must be a time in ISO 8601.", field=self.at(names[0]))
        return found

    def with_defaults(self, values: JsonObject) -> Entry:
        """The same object, with these values for fields that it does not have or that are null."""
        said = {name: value for name, value in self._value.items() if value is not None}
        return Entry({**values, **said}, self.path)

    def rest(self, prefix: str) -> JsonObject:
        """The fields that nobody asked for, under names of their own."""
        unread = self._value.keys() - self._read
        return {
            prefix + name: self._value[name] for name in self._value if name in unread and self._value[name] is not None
        }


def entries(value: JsonValue, path: str) -> list[Entry]:
    if not isinstance(value, list):
        raise RecordError(f"{path or 'the document'}: expected a list.", field=path or None)
    return [Entry(item, f"{path}[{index}]") for index, item in enumerate(value)]
