"""Reading the fields of a check; whatever is wrong is named with its place."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from replay_goldens.trace import Json

MOST_NUMBER = 999_999_999
LONGEST_TEXT = 2_000


class CheckError(ValueError):
    """A check is not one; `field` says where, such as `checks[1].tool`."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class CheckFields:
    """The fields of one check, each asked for by name. `field` is the check's own place."""

    def __init__(self, value: Json, field: str) -> None:
        if not isinstance(value, dict):
            raise CheckError(f"{field} must be an object with a kind.", field=field)
        self._value: dict[str, Any] = value
        self.field = field

    def place(self, name: str) -> str:
        return f"{self.field}.{name}"

    def refuse_others(self, names: Collection[str]) -> None:
        other = next((name for name in self._value if name != "kind" and name not in names), None)
        if other is not None:
            known = ", ".join(names) or "no fields"
            raise CheckError(f"A check of kind {self.kind} has {known}, and no {other!r}.", field=self.place(other))

    @property
    def kind(self) -> str:
        return str(self._value.get("kind"))

    def has(self, name: str) -> bool:
        return name in self._value

    def json(self, name: str) -> Json:
        return self._value[name]

    def text(self, name: str) -> str:
        value = self._value.get(name)
        if not isinstance(value, str) or not value or len(value) > LONGEST_TEXT or "\x00" in value:
            words = f"{self.place(name)} must be text of 1 to {LONGEST_TEXT:,} characters."
            raise CheckError(words, field=self.place(name))
        return value

    def path(self) -> str:
        """A JSON Pointer, or names with dots; the empty one is the whole value."""
        return "" if self._value.get("path") == "" else self.text("path")

    def optional_path(self) -> str:
        """The whole value where there is none."""
        return self.path() if self.has("path") else ""

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._value.get(name)
        if not isinstance(value, list) or not value or len(value) > 100:
            raise CheckError(f"{self.place(name)} must be a list of 1 to 100 texts.", field=self.place(name))
        for position, item in enumerate(value):
            if not isinstance(item, str) or not item or len(item) > LONGEST_TEXT or "\x00" in item:
                place = f"{self.place(name)}[{position}]"
                raise CheckError(f"{place} must be text of 1 to {LONGEST_TEXT:,} characters.", field=place)
        return tuple(value)

    def whole_number(self, name: str, *, least: int = 0) -> int:
        value = self._value.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST_NUMBER:
            words = f"{self.place(name)} must be a whole number from {least} on."
            raise CheckError(words, field=self.place(name))
        return value

    def number(self, name: str) -> float:
        value = self._value.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) <= MOST_NUMBER:
            words = f"{self.place(name)} must be a number of at most {MOST_NUMBER:,}."
            raise CheckError(words, field=self.place(name))
        return value

    def one_of(self, names: Collection[str]) -> str:
        """The single one of these fields that is there."""
        there = [name for name in names if name in self._value]
        if len(there) != 1:
            words = f"A check of kind {self.kind} has exactly one of {', '.join(names)}."
            raise CheckError(words, field=self.place(there[1] if there else next(iter(names))))
        return there[0]
