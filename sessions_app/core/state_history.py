"""What happened to a run's state, operation by operation, and to one value in it.

A walk changes one state in place, so that a list which grows by an item a step costs no copies of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.compare.strict import Interner
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import StateChange
from sessions_app.core.state import InPlace, PatchError, PointerError, each_state, read_pointer, value_at

Place = tuple[str, ...]
"""The keys and indexes that lead to a value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Applied:
    """One operation of a JSON Patch, just applied. Its values are those of the state, which the walk goes on to
    change: look at them before the next one is asked for."""

    step: int
    is_between: bool
    """Whether it happened between the previous step and this one."""
    is_last: bool
    """Of its step, or of what happened before its step."""
    op: str
    place: Place
    """Where it changed something; an item that was appended has its index."""
    origin: Place | None
    """Where a moved or copied value comes from."""
    before: JsonValue
    """What it took away; `MISSING` for an item that was put into a list, which moves the others."""
    after: JsonValue
    watched: tuple[JsonValue, JsonValue]
    """The value that the walk watches, before and after; of no use when the operation changed something inside it."""

    @property
    def has_effect(self) -> bool:
        if self.op == "test":
            return False
        is_moved = self.op in ("move", "remove")
        return is_moved or self.before is MISSING or not Interner(any_key_order=True).same(self.before, self.after)


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """The step whose recorded change does not fit the state, and why."""

    step: int
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueChange:
    """What a step did to one value; `MISSING` where there was none."""

    step: int
    is_between: bool
    kind: str
    """`add`, `remove` or `replace`."""
    before: JsonValue
    after: JsonValue


class StateHistory:
    """The states of a run one after another, from its initial state and the changes of its steps.

    `initial` is None when none was recorded.
    """

    def __init__(self, initial: JsonValue, changes: Sequence[tuple[int, StateChange]]) -> None:
        self.initial = initial
        self._changes = changes
        self.broken = self._find_break()
        """Where the recorded changes stop to fit; what comes after it is not known."""

    @property
    def is_captured(self) -> bool:
        return self.initial is not None or bool(self._changes)

    @property
    def operations(self) -> int:
        """How many operations the whole run recorded."""
        return sum(len(change.before) + len(change.after) for _, change in self._changes)

    def operations_before(self, step: int) -> int:
        """How many operations the steps before this one recorded."""
        earlier = (change for index, change in self._changes if index < step)
        return sum(len(change.before) + len(change.after) for change in earlier)

    def state_after(self, step: int) -> JsonValue:
        """None before the first state, and where the state is not known."""
        has_begun = self.initial is not None or any(index <= step for index, _ in self._changes)
        if not has_begun or (self.broken is not None and self.broken.step <= step):
            return None
        state, way = self._start()
        for _, _, operations in self._patches(until=step):
            for after in each_state(state, operations, way):
                state = after
        return state

    def walk(self, watch: Place = ()) -> Iterator[Applied]:
        """Every operation in order, up to the first one that does not fit."""
        state, way = self._start()
        for step, is_between, operations in self._patches():
            states = each_state(state, operations, way)
            for position, operation in enumerate(operations, start=1):
                facts = _facts(state, operation)
                old = value_at(state, watch)
                try:
                    state = next(states)
                except PatchError:
                    return
                after = MISSING if facts["op"] == "remove" else value_at(state, facts["place"])
                facts |= {"after": after, "watched": (old, value_at(state, watch))}
                is_last = position == len(operations)
                yield Applied(step=step, is_between=is_between, is_last=is_last, **facts)

    def changes_of(
        self, place: Place, keep: Callable[[JsonValue], JsonValue], *, start: int = 0
    ) -> Iterator[ValueChange]:
        """Each change of the value at a place, one for all operations of a step, from number `start` (from 0) on.

        `keep` makes what is kept of a value, which changes after that.
        """
        number, was_there, is_touched = -1, value_at(self.initial, place) is not MISSING, False
        before = keep(value_at(self.initial, place)) if was_there and not start else MISSING
        for applied in self.walk(place):
            is_touched = is_touched or _touches(applied, place)
            if not applied.is_last or not is_touched:
                continue
            number, is_touched, found = number + 1, False, applied.watched[1]
            after = keep(found) if found is not MISSING and number >= start - 1 else MISSING
            if number >= start:
                kind = "remove" if found is MISSING else "replace" if was_there else "add"
                is_between = applied.is_between
                yield ValueChange(step=applied.step, is_between=is_between, kind=kind, before=before, after=after)
            before, was_there = after, found is not MISSING

    def _find_break(self) -> Broken | None:
        state, way = self._start()
        for step, _, operations in self._patches():
            try:
                for after in each_state(state, operations, way):
                    state = after
            except PatchError as error:
                return Broken(step=step, message=str(error))
        return None

    def _start(self) -> tuple[JsonValue, InPlace]:
        way = InPlace()
        return way.value({} if self.initial is None else self.initial), way

    def _patches(self, until: int | None = None) -> Iterator[tuple[int, bool, Sequence[JsonObject]]]:
        for step, change in self._changes:
            if until is None or step <= until:
                yield step, True, change.before
                yield step, False, change.after


def _facts(state: JsonValue, operation: JsonObject) -> JsonObject:
    """What has to be asked before the operation is applied."""
    op, place = str(operation.get("op")), _place(operation.get("path"))
    container = value_at(state, place[:-1]) if place else None
    is_item = isinstance(container, list) and op in ("add", "copy", "move")
    if isinstance(container, list) and place[-1] == "-":
        place = (*place[:-1], str(len(container)))
    origin = _place(operation.get("from")) if op in ("move", "copy") else None
    before = MISSING if is_item else value_at(state, place)
    return {"op": op, "place": place, "origin": origin, "before": before}


def _place(pointer: JsonValue) -> Place:
    """Nothing for what is no pointer: applying it fails, with a reason."""
    try:
        return tuple(read_pointer(pointer)) if isinstance(pointer, str) else ()
    except PointerError:
        return ()


def _touches(applied: Applied, place: Place) -> bool:
    """Whether the value at the place is another one now. A container is not compared with what it was: an operation
    inside it that changed something has changed it."""
    if _is_inside(applied.place, place) or (
        applied.origin and applied.op == "move" and _is_inside(applied.origin, place)
    ):
        return applied.has_effect
    old, new = applied.watched
    return old is not new and not Interner(any_key_order=True).same(old, new)


def _is_inside(inner: Place, outer: Place) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer
