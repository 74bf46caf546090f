"""The view of a run's state: the whole of it after a step, each change of one value, and the checkpoint there."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.payload import JsonValue
from sessions_app.core.state import PointerError, read_pointer, value_at
from sessions_app.core.state_history import Place
from sessions_app.models import Project, Run
from sessions_app.queries.states import RunState, at_step, state_of
from sessions_app.web.render.tree import Node
from sessions_app.web.run_pages import RunPlace, whole_number
from sessions_app.web.sessions.restored import last_shown, until_of
from sessions_app.web.states.words import (
    brief,
    digest_of,
    path_words,
    pointer_of,
    shown_operation,
    state_tree,
)

ROWS = 200
SNAPSHOTS = 50
SETTINGS = 40
SNAPSHOT_FIELDS = ("step_number", "memory", "context_variables", "tool_results", "iteration_count")


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A part of a long list: its rows, and where the parts before and after it begin."""

    rows: list[Any]
    start: int
    total: int
    length: int
    """How many of the total its rows tell."""

    @property
    def earlier(self) -> int | None:
        return max(self.start - ROWS, 0) if self.start else None

    @property
    def later(self) -> int | None:
        return self.start + ROWS if self.start + ROWS < self.total else None

    @property
    def first(self) -> int:
        return self.start + 1

    @property
    def last(self) -> int:
        return self.start + self.length


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """One value of the state over the whole run."""

    path: str
    pointer: str
    tree: Node | None
    """As it is after the step that is shown; None when there is no such value there, or it cannot be drawn."""
    is_there: bool
    changes: Part
    is_initial: bool
    """Whether it was in the state that the run began with."""
    first_set: int | None
    previous: int | None
    """The last step before the one shown that changed it."""
    following: int | None


def state_context(request: HttpRequest, project: Project, place: RunPlace) -> dict[str, Any]:
    """The same number of queries for every run: none of its payloads but those of one request is read."""
    last = last_shown(place)
    step = min(whole_number(request.GET.get("step"), last) or 1, last)
    path = request.GET.get("path", "")
    shown: dict[str, Any] = {
        "state_step": step,
        "step_above": step - 1 if step > 1 else None,
        "step_below": step + 1 if step < last else None,
        "asked_path": path,
        "kept_path": f"{urlencode({'path': path})}&" if path else "",
        "q_state": f"{place.query}view=state&",
        **_checkpoint(place.run, step),
    }
    try:
        state = state_of(place.run, until=until_of(place))
    except StoredBytesMissing as problem:
        return shown | {"state_gone": str(problem)}
    value = state.history.state_after(step)
    return shown | _state(request, state, step, value) | _value_asked_for(request, state, step, value)


def _checkpoint(run: Run, step: int) -> dict[str, Any]:
    if not step:
        return {}
    found = at_step(run, step)
    given = found.model_config["settings"]
    named = given if isinstance(given, dict) else {} if given is None else {"settings": given}
    return {
        "checkpoint": found,
        "checkpoint_settings": [(name, brief(value)) for name, value in islice(named.items(), SETTINGS)],
    }


def _state(request: HttpRequest, state: RunState, step: int, value: JsonValue) -> dict[str, Any]:
    snapshot = next((each for each in state.snapshots if each.step == step), None)
    broken = state.history.broken
    return {
        "has_state": state.history.is_captured,
        "broken": broken,
        "is_known": broken is None or step < broken.step,
        "has_begun": value is not None,
        "state_tree": None if value is None else state_tree(value),
        "state_digest": digest_of(value),
        "operations": _operations(request, state, step),
        "snapshots": state.snapshots[:SNAPSHOTS],
        "more_snapshots": max(len(state.snapshots) - SNAPSHOTS, 0),
        "snapshot": snapshot,
        "snapshot_fields": _fields(value) if snapshot else [],
    }


def _operations(request: HttpRequest, state: RunState, step: int) -> Part:
    """The part of the list that the address asks for, or the one with the step."""
    history = state.history
    start = part_start(request.GET.get("changes"), history.operations_before(step), history.operations)
    part = islice(history.walk(), start, start + ROWS)
    rows = [
        [shown_operation(applied, state.names[number]) for applied in group]
        for number, group in groupby(part, key=lambda each: each.step)
    ]
    return Part(rows=rows, start=start, total=history.operations, length=sum(map(len, rows)))


def part_start(asked: str | None, default: int, total: int) -> int:
    """Where the part begins that the address asks for, or the one that holds the default."""
    at = min(whole_number(asked, default), max(total - 1, 0))
    return at // ROWS * ROWS


def _fields(state: JsonValue) -> list[tuple[str, bool, Node | None]]:
    """The five of a snapshot, in their order: name, whether it was captured, and its value."""
    held = state if isinstance(state, dict) else {}
    return [(name, name in held, state_tree(held[name], (name,)) if name in held else None) for name in SNAPSHOT_FIELDS]


# --- one value ---------------------------------------------------------------------------------


def _value_asked_for(request: HttpRequest, state: RunState, step: int, whole: JsonValue) -> dict[str, Any]:
    path = request.GET.get("path", "")
    if not path:
        return {}
    try:
        place = tuple(read_pointer(path))
    except PointerError:
        return {"path_problem": "A path is a JSON Pointer: it begins with / and goes down key by key."}
    return {"value": _value(request, state, step, value_at(whole, place), place)}


def _value(request: HttpRequest, state: RunState, step: int, found: JsonValue, place: Place) -> Value:
    rows = list(state.history.changes_of(place, keep=brief))
    passed = sum(row.step <= step for row in rows)
    start = part_start(request.GET.get("rows"), max(passed - 1, 0), len(rows))
    items = whole_number(request.GET.get("items"), 0)
    return Value(
        path=path_words(place) or "the whole state",
        pointer=pointer_of(place),
        tree=None if found is MISSING else state_tree(found, place, start=items),
        is_there=found is not MISSING,
        changes=Part(rows=(shown := rows[start : start + ROWS]), start=start, total=len(rows), length=len(shown)),
        is_initial=value_at(state.history.initial, place) is not MISSING,
        first_set=next((row.step for row in rows if row.kind == "add"), None),
        previous=next((row.step for row in reversed(rows) if row.step < step), None),
        following=next((row.step for row in rows if row.step > step), None),
    )
