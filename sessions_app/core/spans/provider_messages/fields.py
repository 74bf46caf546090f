"""Fields of objects that are spelled differently by each provider.

Asked for many times in each message: a plain loop costs half of what `next` over a generator does.
"""

from __future__ import annotations

from sessions_app.core.payload import JsonObject, JsonValue


def first(item: JsonObject, *names: str) -> JsonValue:
    """The first of these fields that is not None."""
    for name in names:
        if (value := item.get(name)) is not None:
            return value
    return None


def text(item: JsonObject, *names: str) -> str | None:
    """The first of these fields that is a text and not empty."""
    for name in names:
        if isinstance(value := item.get(name), str) and value:
            return value
    return None


def entry(item: JsonObject, *names: str) -> JsonObject:
    """The first of these fields that is an object; an empty one when none is."""
    for name in names:
        if isinstance(value := item.get(name), dict):
            return value
    return {}


def entries(item: JsonObject, *names: str) -> list[JsonValue]:
    """The first of these fields that is a list; an empty one when none is."""
    for name in names:
        if isinstance(value := item.get(name), list):
            return value
    return []
