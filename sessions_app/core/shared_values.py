"""Conversions of values that many spans share, each done once.

Each model call of a trace holds the messages of the calls before it, and `Unpacker` gives an equal one as the same
object. Without this, reading a trace of n calls converts n² messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from operator import is_
from typing import Any, TypeVar

_Value = TypeVar("_Value")
_Made = TypeVar("_Made")
_MADE: ContextVar[dict[tuple[object, int], tuple[Any, Any]] | None] = ContextVar("_MADE", default=None)
_NOTHING: tuple[tuple[()], tuple[()]] = ((), ())


@contextmanager
def shared_values() -> Iterator[None]:
    """Within, what `once_each` made of a value is kept, and so is the value: nobody may change either.

    Within another one it changes nothing: the outer one keeps.
    """
    token = _MADE.set({} if (made := _MADE.get()) is None else made)
    try:
        yield
    finally:
        _MADE.reset(token)


def once_each(convert: Callable[[_Value], _Made]) -> Callable[[_Value], _Made]:
    """Makes `convert` answer with what it made of the same object before."""

    @wraps(convert)
    def converted(value: _Value) -> _Made:
        made = _MADE.get()
        if made is None:
            return convert(value)
        key = (convert, id(value))
        known = made.get(key)
        if known is None:
            known = made[key] = (value, convert(value))
        made_before: _Made = known[1]
        return made_before

    return converted


def each_once(convert: Callable[[_Value], _Made]) -> Callable[[Sequence[_Value]], list[_Made]]:
    """`convert` for all values of a list. Of one that grew, which begins with the same objects, only the new ones are
    looked at."""
    convert_one = once_each(convert)

    def converted(values: Sequence[_Value]) -> list[_Made]:
        made = _MADE.get()
        if made is None or not values:
            return list(map(convert, values))
        key = (converted, id(values[0]))
        before, results = made.get(key, _NOTHING)
        if len(before) > len(values) or not all(map(is_, before, values)):
            before, results = _NOTHING
        found: list[_Made] = [*results, *map(convert_one, values[len(before) :])]
        made[key] = (values, found)
        return found

    return converted
