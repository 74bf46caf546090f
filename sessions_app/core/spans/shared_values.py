"""Conversions of values that many spans share, each done once.

Each model call of a trace holds the messages of the calls before it, and `Unpacker` gives an equal one as the same
object. Without this, reading a trace of n calls converts n² messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TypeVar

from sessions_app.core.payload import JsonValue

_Made = TypeVar("_Made")
_MADE: ContextVar[dict[tuple[object, int], tuple[JsonValue, object]] | None] = ContextVar("_MADE", default=None)
_LONG = 200
"""Characters from which a text is worth it."""


@contextmanager
def shared_values() -> Iterator[None]:
    """Within, what `once_each` made of a value is kept, and so is the value: nobody may change either."""
    token = _MADE.set({})
    try:
        yield
    finally:
        _MADE.reset(token)


def once_each(convert: Callable[[JsonValue], _Made]) -> Callable[[JsonValue], _Made]:
    """Makes `convert` answer with what it made of the same object before."""

    @wraps(convert)
    def converted(value: JsonValue) -> _Made:
        made = _MADE.get()
        if made is None or not _is_worth_it(value):
            return convert(value)
        key = (convert, id(value))
        known = made.get(key)
        if known is None:
            known = made[key] = (value, convert(value))
        return known[1]  # type: ignore[return-value]  # what `convert` made is kept under its name

    return converted


def _is_worth_it(value: JsonValue) -> bool:
    return isinstance(value, dict | list) or (isinstance(value, str) and len(value) >= _LONG)
