"""The state of a record behind a step: JSON Patch (RFC 6902), as far as recorders write it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from replay_goldens.trace import Json
from replay_goldens.values import NothingThere, segments_of, value_at


class StateBroken(Exception):
    """A recorded change does not fit the state before it."""


def state_after(initial: Json, steps: Sequence[dict[str, Any]]) -> Json:
    """What the changes of these steps make of the first state. Raises `StateBroken`."""
    state = _begun(initial)
    for step in steps:
        _go_on(state, step)
    return state[""]


def states_behind(initial: Json, steps: Iterable[dict[str, Any]]) -> Iterator[Json]:
    """The state behind each of these steps. Raises `StateBroken`."""
    state = _begun(initial)
    for step in steps:
        _go_on(state, step)
        yield copy.deepcopy(state[""])


def _begun(initial: Json) -> dict[str, Json]:
    """The whole state stands under the empty name, so that it has a container as all else."""
    return {"": {} if initial is None else copy.deepcopy(initial)}


def _go_on(state: dict[str, Json], step: dict[str, Any]) -> None:
    changes = step.get("state") or {}
    for operation in (*(changes.get("before") or ()), *(changes.get("after") or ())):
        _change(state, operation)


def _change(state: dict[str, Json], operation: dict[str, Any]) -> None:
    apply = _OPERATIONS.get(str(operation.get("op")))
    if apply is None:
        raise StateBroken(f"there is no operation {operation.get('op')!r}")
    try:
        *way, last = ["", *segments_of(operation["path"])]
        container: Json = state
        for segment in way:
            container = container[_key(container, segment)]
        apply(state, container, last, operation)
    except (KeyError, IndexError, TypeError, ValueError, NothingThere) as error:
        raise StateBroken(f"{operation.get('op')} {operation.get('path')!r}: {error}") from None


def _key(container: Json, segment: str) -> str | int:
    return int(segment) if isinstance(container, list) else segment


def _add(state: Json, container: Json, last: str, operation: dict[str, Any]) -> None:
    value = copy.deepcopy(operation["value"])
    if isinstance(container, list):
        container.insert(len(container) if last == "-" else int(last), value)
    else:
        container[last] = value


def _replace(state: Json, container: Json, last: str, operation: dict[str, Any]) -> None:
    key = _key(container, last)
    container[key]  # it must be there
    container[key] = copy.deepcopy(operation["value"])


def _remove(state: Json, container: Json, last: str, operation: dict[str, Any]) -> None:
    del container[_key(container, last)]


def _copy(state: Json, container: Json, last: str, operation: dict[str, Any]) -> None:
    _add(state, container, last, {"value": value_at(state[""], operation["from"])})


def _move(state: Json, container: Json, last: str, operation: dict[str, Any]) -> None:
    value = value_at(state[""], operation["from"])
    _change(state, {"op": "remove", "path": operation["from"]})
    _change(state, {"op": "add", "path": operation["path"], "value": value})


def _test(state: Json, container: Json, last: str, operation: dict[str, Any]) -> None:
    if container[_key(container, last)] != operation["value"]:
        raise ValueError("the value there is another one")


_OPERATIONS: dict[str, Callable[[Json, Json, str, dict[str, Any]], None]] = {
    "add": _add,
    "replace": _replace,
    "remove": _remove,
    "copy": _copy,
    "move": _move,
    "test": _test,
}
