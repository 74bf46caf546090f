"""One small change to a JSON value: of its text, a number, the order of its keys and so on."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

Change = Callable[[Any], Iterator[tuple[str, Any]]]
"""Gives each way to make the change: the path inside the value, and the whole value with it."""


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value inside, the whole one first."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{at}]")


def _replaced(value: Any, path: str, new: Any) -> Any:
    """A copy with another value at that path."""
    if not path:
        return copy.deepcopy(new)
    return json.loads(json.dumps(_rebuilt(value, "", path, new)))


def _rebuilt(value: Any, here: str, path: str, new: Any) -> Any:
    if here == path:
        return new
    if isinstance(value, dict):
        return {key: _rebuilt(inner, f"{here}.{key}", path, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rebuilt(inner, f"{here}[{at}]", path, new) for at, inner in enumerate(value)]
    return value


def _at_leaves(make: Callable[[Any], Any]) -> Change:
    def change(value: Any) -> Iterator[tuple[str, Any]]:
        for path, leaf in leaves(value):
            new = make(leaf)
            if new is not NOTHING:
                yield path, _replaced(value, path, new)

    return change


class _Nothing:
    """No such change can be made here."""


NOTHING = _Nothing()


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> Any:
    return value[:-1] + ("x" if value[-1] != "x" else "y") if isinstance(value, str) and value else NOTHING


def _number(value: Any) -> Any:
    return value + 1 if is_number(value) and value + 1 != value else NOTHING


def _spelling(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
    if whole:
        return float(value)
    return int(value) if isinstance(value, float) and value == int(value) else NOTHING


def _kind_of_number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return bool(value) if is_number(value) and value in (0, 1) else NOTHING


def _as_text(value: Any) -> Any:
    return json.dumps(value) if value is None or isinstance(value, bool) or is_number(value) else NOTHING


def _null(value: Any) -> Any:
    return NOTHING if value is None else None


def _key_order(value: Any) -> Any:
    return dict(reversed(value.items())) if isinstance(value, dict) and len(value) > 1 else NOTHING


def _added_key(value: Any) -> Any:
    return {**value, "added": None} if isinstance(value, dict) else NOTHING


def _removed_key(value: Any) -> Any:
    return dict(list(value.items())[:-1]) if isinstance(value, dict) and value else NOTHING


def _list_order(value: Any) -> Any:
    turned = value[::-1] if isinstance(value, list) else None
    return turned if turned is not None and json.dumps(turned) != json.dumps(value) else NOTHING


def _removed_item(value: Any) -> Any:
    return value[:-1] if isinstance(value, list) and value else NOTHING


def _blank(value: Any) -> Any:
    return value + " " if isinstance(value, str) and value else NOTHING


def _unicode(value: Any) -> Any:
    """The same to the eye: composed or not."""
    return value.replace("ü", "u\u0308") if isinstance(value, str) and "ü" in value else NOTHING


CHANGES: dict[str, Change] = {
    "text": _at_leaves(_text),
    "a blank at the end": _at_leaves(_blank),
    "letters composed another way": _at_leaves(_unicode),
    "number": _at_leaves(_number),
    "spelling of a number": _at_leaves(_spelling),
    "true for 1": _at_leaves(_kind_of_number),
    "text for a number": _at_leaves(_as_text),
    "null": _at_leaves(_null),
    "order of keys": _at_leaves(_key_order),
    "key added": _at_leaves(_added_key),
    "key removed": _at_leaves(_removed_key),
    "order of a list": _at_leaves(_list_order),
    "item removed": _at_leaves(_removed_item),
}


def in_written(change: Change, value: Any) -> Iterator[tuple[str, Any]]:
    """The same inside of a text that spells JSON; it stays a text."""
    if not isinstance(value, str):
        yield from change(value)
        return
    try:
        inner = json.loads(value)
    except ValueError:
        return
    for path, new in change(inner):
        yield path, json.dumps(new, ensure_ascii=False)
