"""The agent's state as a chain of changes: JSON Patch (RFC 6902) with JSON Pointer (RFC 6901).

A list shows what was added and what was removed or changed, so that nothing that happened to the
state is lost between two steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sessions_app.core.compare.json_diff import MISSING, common_ends
from sessions_app.core.compare.strict import Interner
from sessions_app.core.errors import ReplayProductError
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step

_INDEX = re.compile(r"0|[1-9][0-9]*")
_BAD_ESCAPE = re.compile(r"~(?![01])")


class PatchError(ReplayProductError):
    """A JSON Patch operation cannot be applied; `operation` is the one, `position` where it stands."""

    def __init__(self, message: str, *, operation: JsonValue, position: int) -> None:
        super().__init__(f"Operation {position} ({_in_short(operation)}): {message}")
        self.operation = operation
        self.position = position


class PointerError(ReplayProductError):
    """A text is no JSON Pointer (RFC 6901), such as `/orders/0/status`."""


def _in_short(operation: JsonValue) -> str:
    if not isinstance(operation, dict):
        return "not an object"
    return f"{operation.get('op')} {operation.get('path')!r}"


# --- difference --------------------------------------------------------------------------------


def diff_state(before: JsonValue, after: JsonValue) -> list[JsonObject]:
    """Operations that lead from one state to the other; `1`, `1.0` and `true` are three values.

    Lists keep their equal beginnings and ends; what stands between is changed position by position,
    and then removed from the end or added.
    """
    return list(_Diff().operations("", before, after))


class _Diff:
    def __init__(self) -> None:
        self._interner = Interner(any_key_order=True)

    def operations(self, pointer: str, before: JsonValue, after: JsonValue) -> Iterator[JsonObject]:
        if self._interner.same(before, after):
            return
        if isinstance(before, dict) and isinstance(after, dict):
            yield from self._members(pointer, before, after)
        elif isinstance(before, list) and isinstance(after, list):
            yield from self._items(pointer, before, after)
        else:
            yield {"op": "replace", "path": pointer, "value": after}

    def _members(self, pointer: str, before: JsonObject, after: JsonObject) -> Iterator[JsonObject]:
        for key, value in before.items():
            path = child_pointer(pointer, key)
            if key in after:
                yield from self.operations(path, value, after[key])
            else:
                yield {"op": "remove", "path": path}
        for key, value in after.items():
            if key not in before:
                yield {"op": "add", "path": child_pointer(pointer, key), "value": value}

    def _items(self, pointer: str, before: list[JsonValue], after: list[JsonValue]) -> Iterator[JsonObject]:
        start, tail = common_ends(before, after, self._interner)
        end, new_end = len(before) - tail, len(after) - tail
        shared = min(end, new_end)
        for i in range(start, shared):
            yield from self.operations(child_pointer(pointer, i), before[i], after[i])
        for i in reversed(range(shared, end)):
            yield {"op": "remove", "path": child_pointer(pointer, i)}
        for i in range(shared, new_end):
            yield {"op": "add", "path": child_pointer(pointer, i), "value": after[i]}


def child_pointer(pointer: str, segment: str | int) -> str:
    return f"{pointer}/{str(segment).replace('~', '~0').replace('/', '~1')}"


# --- apply -------------------------------------------------------------------------------------


def apply_patch(state: JsonValue, operations: Sequence[JsonObject]) -> JsonValue:
    """The state after the operations. Nothing given is changed; untouched parts are shared with it.

    Raises `PatchError` naming the operation.
    """
    for after in each_state(state, operations):
        state = after
    return state


def each_state(state: JsonValue, operations: Sequence[JsonObject], way: Way | None = None) -> Iterator[JsonValue]:
    """The state after each of the operations, as `apply_patch`; `way` says how a state is changed."""
    for position, operation in enumerate(operations):
        try:
            state = _apply(state, operation, way or SHARING)
        except _CannotApply as error:
            message = str(error)
            raise PatchError(message, operation=operation, position=position) from None
        yield state


class _CannotApply(Exception):
    """Why one operation does not fit the state."""


class StateTooLarge(_CannotApply):
    """A state would hold more than `MOST_VALUES` values, or a value that is nested too deep to be copied."""


class Way:
    """How a state is changed: containers on the way are copied, everything else is shared."""

    def container(self, container: JsonValue) -> JsonValue:
        return container.copy()

    def value(self, value: JsonValue) -> JsonValue:
        return value


SHARING = Way()


class InPlace(Way):
    """Changes the state itself, which must be nobody else's: many changes of a long list cost no copies of it.

    A state can double with each `copy`; no more than `MOST_VALUES` are put into one.
    """

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def container(self, container: JsonValue) -> JsonValue:
        return container

    def value(self, value: JsonValue) -> JsonValue:
        """A copy that is the state's own; raises `StateTooLarge`."""
        try:
            return self._copy(value)
        except RecursionError:
            raise StateTooLarge("a value is nested too deep to be copied") from None

    def _copy(self, value: JsonValue) -> JsonValue:
        self._left -= 1
        if self._left < 0:
            raise StateTooLarge(f"the state would hold more than {MOST_VALUES} values")
        if isinstance(value, dict):
            return {key: self._copy(item) for key, item in value.items()}
        return [self._copy(item) for item in value] if isinstance(value, list) else value


MOST_VALUES = 2_000_000


def _apply(state: JsonValue, operation: JsonValue, way: Way) -> JsonValue:
    if not isinstance(operation, dict) or not isinstance(operation.get("op"), str):
        raise _CannotApply("an operation is an object with op and path")
    apply = _OPERATIONS.get(operation["op"])
    if apply is None:
        raise _CannotApply(f"op must be one of {', '.join(_OPERATIONS)}")
    return apply(state, operation, way)


def _add(state: JsonValue, operation: JsonObject, way: Way) -> JsonValue:
    return _change(state, _pointer(operation, "path"), _inserting(way.value(_value(operation)), way), way)


def _remove(state: JsonValue, operation: JsonObject, way: Way) -> JsonValue:
    return _change(state, _pointer(operation, "path"), _removing(way), way)


def _replace(state: JsonValue, operation: JsonObject, way: Way) -> JsonValue:
    return _change(state, _pointer(operation, "path"), _replacing(way.value(_value(operation)), way), way)


def _move(state: JsonValue, operation: JsonObject, way: Way) -> JsonValue:
    source, target = _pointer(operation, "from"), _pointer(operation, "path")
    if len(target) > len(source) and target[: len(source)] == source:
        raise _CannotApply("a value cannot be moved into itself")
    value = _look_up(state, source)
    if source == target:
        return state
    return _change(_change(state, source, _removing(way), way), target, _inserting(value, way), way)


def _copy(state: JsonValue, operation: JsonObject, way: Way) -> JsonValue:
    value = way.value(_look_up(state, _pointer(operation, "from")))
    return _change(state, _pointer(operation, "path"), _inserting(value, way), way)


def _test(state: JsonValue, operation: JsonObject, way: Way) -> JsonValue:
    found = _look_up(state, _pointer(operation, "path"))
    if not Interner(any_key_order=True).same(found, _value(operation)):
        raise _CannotApply("the value there is another one")
    return state


_OPERATIONS: dict[str, Callable[[JsonValue, JsonObject, Way], JsonValue]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _value(operation: JsonObject) -> JsonValue:
    if "value" not in operation:
        raise _CannotApply("value is missing")
    return operation["value"]


def _pointer(operation: JsonObject, name: str) -> list[str]:
    text = operation.get(name)
    if not isinstance(text, str):
        raise _CannotApply(f"{name} must be a JSON Pointer")
    try:
        return read_pointer(text)
    except PointerError as error:
        raise _CannotApply(f"{name} {error}") from None


def read_pointer(text: str) -> list[str]:
    """The keys and indexes that a JSON Pointer names; raises `PointerError`."""
    if (text and not text.startswith("/")) or _BAD_ESCAPE.search(text):
        raise PointerError(f"{text[:80]!r} is no JSON Pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def value_at(state: JsonValue, segments: Sequence[str]) -> JsonValue:
    """The value at a place in the state; `MISSING` when there is none."""
    try:
        return _look_up(state, segments)
    except _CannotApply:
        return MISSING


Edit = Callable[[JsonValue, "str | None"], JsonValue]
"""Gets the container and the last segment, or the whole state and None; gives what stands there after."""


def _change(state: JsonValue, segments: list[str], edit: Edit, way: Way) -> JsonValue:
    """Touches the containers on the way and nothing else."""
    if not segments:
        return edit(state, None)
    containers = [state]
    for segment in segments[:-1]:
        containers.append(_child(containers[-1], segment))
    changed = edit(containers.pop(), segments[-1])
    for container, segment in zip(reversed(containers), reversed(segments[:-1]), strict=True):
        changed = _with_child(container, segment, changed, way)
    return changed


def _look_up(state: JsonValue, segments: Sequence[str]) -> JsonValue:
    for segment in segments:
        state = _child(state, segment)
    return state


def _child(container: JsonValue, segment: str) -> JsonValue:
    return container[_position(container, segment)]


def _with_child(container: JsonValue, segment: str, value: JsonValue, way: Way) -> JsonValue:
    position = _position(container, segment)
    changed = way.container(container)
    changed[position] = value
    return changed


def _position(container: JsonValue, segment: str, *, past_end: bool = False) -> str | int:
    """The key or index that a segment names in a container; it must be there."""
    if isinstance(container, dict):
        if segment not in container and not past_end:
            raise _CannotApply(f"there is no {segment[:80]!r}")
        return segment
    if not isinstance(container, list):
        raise _CannotApply(f"{segment[:80]!r} is looked for in a value that is no object or list")
    return _index(container, segment, past_end=past_end)


def _index(items: list[JsonValue], segment: str, *, past_end: bool) -> int:
    if segment == "-" and past_end:
        return len(items)
    if not _INDEX.fullmatch(segment) or len(segment) > 15:
        raise _CannotApply(f"{segment[:80]!r} is no index of a list")
    index = int(segment)
    if index >= len(items) + past_end:
        raise _CannotApply(f"the list has {len(items)} items and no index {index}")
    return index


def _inserting(value: JsonValue, way: Way) -> Edit:
    def edit(container: JsonValue, segment: str | None) -> JsonValue:
        if segment is None:
            return value
        position = _position(container, segment, past_end=True)
        changed = way.container(container)
        if isinstance(position, int):
            changed.insert(position, value)
        else:
            changed[position] = value
        return changed

    return edit


def _replacing(value: JsonValue, way: Way) -> Edit:
    def edit(container: JsonValue, segment: str | None) -> JsonValue:
        return value if segment is None else _with_child(container, segment, value, way)

    return edit


def _removing(way: Way) -> Edit:
    def edit(container: JsonValue, segment: str | None) -> JsonValue:
        if segment is None:
            raise _CannotApply("the whole state cannot be removed")
        position = _position(container, segment)
        changed = way.container(container)
        del changed[position]
        return changed

    return edit


# --- the state of a run ------------------------------------------------------------------------


def input_state(run: Run, step: int) -> JsonValue:
    """The state that step `step` (from 1) began with; None when the run has no state."""
    before = state_after(run, step - 1)
    change = run.steps[step - 1].state
    return before if change is None else apply_patch(_started(before), change.before)


def lack_of_states(run: Run) -> str | None:
    """Why no states can be held against those of the run; None where they can."""
    if any(step.state for step in run.steps):
        return None
    return "no state was recorded" if run.initial_state is None else "only the state at the beginning was recorded"


def state_after(run: Run, step: int) -> JsonValue:
    """The state after step `step`; 0 is before the first one. None when the run has no state.

    A run that recorded changes but no initial state began with an empty object. Steps that recorded
    no change left the state as it was.
    """
    return after_steps(None if run.initial_state is None else run.initial_state.value, run.steps[:step])


def after_steps(state: JsonValue, steps: Sequence[Step]) -> JsonValue:
    """The state that these steps leave, of the one that the first of them found."""
    for change in (step.state for step in steps):
        if change is not None:
            state = apply_patch(_started(state), (*change.before, *change.after))
    return state


def _started(state: JsonValue) -> JsonValue:
    return {} if state is None else state


def broken_links(run: Run) -> list[Step]:
    """Steps that did not begin with the state that the step before them left."""
    return [step for step in run.steps if step.state is not None and step.state.before]


_MINUS = "\N{MINUS SIGN}"
_SIGNS = {"add": "+", "remove": _MINUS, "copy": "+", "move": "+"}


def changed_keys(step: Step) -> list[str]:
    """What the step did to the top-level keys of the state: `+docs`, a minus sign before `plan`, `~count`."""
    signs: dict[str, str] = {}
    for operation in step.state.after if step.state else ():
        for key, sign in _touched(operation):
            signs[key] = _combined(signs.get(key), sign)
    return [f"{sign}{key}" for key, sign in signs.items() if sign]


def _touched(operation: JsonObject) -> Iterator[tuple[str, str]]:
    op = operation.get("op")
    if op == "move":
        yield _top(operation.get("from"), _MINUS)
    if op != "test":
        yield _top(operation.get("path"), _SIGNS.get(str(op), "~"))


def _top(pointer: JsonValue, sign: str) -> tuple[str, str]:
    """The first segment; an operation further down changes the key and does not add or remove it."""
    segments = str(pointer).split("/")[1:]
    if not segments:
        return "state", "~"
    key = segments[0].replace("~1", "/").replace("~0", "~")
    return key, sign if len(segments) == 1 else "~"


def _combined(earlier: str | None, later: str) -> str:
    """Added and then changed is added; removed and added again is changed; and so on."""
    table = {("+", "~"): "+", ("+", _MINUS): "", (_MINUS, "+"): "~", ("~", "+"): "~"}
    return later if not earlier else table.get((earlier, later), later)
