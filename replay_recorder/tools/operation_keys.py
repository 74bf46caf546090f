"""Under which key an operation with its arguments is known: the same in every process and after every restart."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

_BY_TEXT = (Decimal, Fraction, UUID, PurePath, timedelta, timezone)
_BY_ISO = (datetime, date, time)


def operation_key(task_id: str, operation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """SHA-256 of the task, the operation's name and its arguments by parameter; see `comparable`.

    Raises `TypeError` for a call that the operation would not take, too.
    """
    parts = [task_id, name_of_operation(operation), comparable(_bound(operation, args, kwargs))]
    return hashlib.sha256(_text(parts).encode()).hexdigest()


def name_of_operation(operation: Callable[..., Any]) -> str:
    """Module and name; raises `TypeError` for a lambda or a partial, of which several share one name."""
    named = operation if hasattr(operation, "__qualname__") else type(operation)
    name = f"{named.__module__}.{named.__qualname__}"
    if name.endswith("<lambda>") or name == "functools.partial":
        raise TypeError(f"{operation!r} has no name of its own to be known by; give it one with def.")
    return name


def _bound(operation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        signature = inspect.signature(operation)
    except ValueError:
        # Some functions in C do not say what they take.
        return {"args": args, "kwargs": kwargs}
    return signature.bind(*args, **kwargs).arguments


def comparable(value: Any) -> Any:
    """JSON that is equal for equal values of equal types and for no others; lists and tuples count as the same.

    Raises `TypeError` for an object whose value does not show: its text is another one after a restart.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list | tuple):
        return ["list", *map(comparable, value)]
    if isinstance(value, Mapping):
        return ["dict", *sorted(([comparable(key), comparable(item)] for key, item in value.items()), key=_text)]
    if isinstance(value, set | frozenset):
        return ["set", *sorted(map(comparable, value), key=_text)]
    return [f"{type(value).__module__}.{type(value).__qualname__}", comparable(_content(value))]


def _content(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, _BY_ISO):
        return value.isoformat()
    if isinstance(value, _BY_TEXT):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return value.model_dump()
    raise TypeError(
        f"An argument of type {type(value).__qualname__} cannot be compared after a restart; "
        "pass what identifies it, such as its id."
    )


def _text(value: Any) -> str:
    return json.dumps(value)
