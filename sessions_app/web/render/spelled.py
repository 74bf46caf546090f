"""JSON read for showing: numbers keep their spelling, keys that stand twice are both kept."""

from __future__ import annotations

import json
from typing import NamedTuple, NoReturn

from sessions_app.core.payload import JsonValue


class Number(str):
    """A number as the producer spelled it; `1.0` and `1` are not the same text."""

    __slots__ = ()


class Pairs(list[tuple[str, JsonValue]]):
    """An object's members in their order."""

    def get(self, key: str, default: JsonValue = None) -> JsonValue:
        return next((value for name, value in self if name == key), default)

    def text(self, key: str) -> str | None:
        """The member when it is a text, else None."""
        value = self.get(key)
        return value if is_text(value) else None

    def without(self, *keys: str) -> Pairs:
        """The members under other names that say something: null and empty ones are left out."""
        return Pairs((name, value) for name, value in self if name not in keys and not is_empty(value))


class Unreadable(NamedTuple):
    """Text that is not JSON, or nested too deep to read."""

    reason: str


def read(text: str | bytes) -> JsonValue | Unreadable:
    try:
        return json.loads(text, object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=_constant)
    except RecursionError:
        return Unreadable("nested too deep to draw")
    except (ValueError, UnicodeDecodeError) as error:
        return Unreadable(str(error).partition(" (char")[0])


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def of_value(value: JsonValue) -> JsonValue:
    """A plain Python value as `read` would give it."""
    if isinstance(value, dict):
        return Pairs((str(key), of_value(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [of_value(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return Number(json.dumps(value, default=str))


def is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


def is_empty(value: JsonValue) -> bool:
    return value is None or (isinstance(value, str | list) and not value)


def embedded(value: JsonValue) -> JsonValue:
    """A text that is itself a JSON object or list, read as one; providers send arguments that way."""
    if not is_text(value) or value.lstrip()[:1] not in ("{", "["):
        return value
    inner = read(value)
    return value if isinstance(inner, Unreadable) else inner


def compact(value: JsonValue) -> str:
    """One line of JSON, with numbers as they were spelled."""
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {compact(v)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(compact(item) for item in value) + "]"
    return str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)
