"""The agent's state before and after a step, put together from the changes of the steps before it."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.errors import RecordError, StoredBytesMissing
from sessions_app.core.formats.fields import Fields
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.state import PatchError, apply_patch
from sessions_app.mapping.load import initial_state
from sessions_app.models import Run
from sessions_app.queries import steps
from sessions_app.queries.states import state_of
from sessions_app.web.render import spelled
from sessions_app.web.render.tree import Node, build_tree
from sessions_app.web.steps.sections import Before, change_text

NODES = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class States:
    """Both states as trees; `note` says why there are none."""

    before: Node | None = None
    after: Node | None = None
    note: str = ""


def states_around(run: Run, index: int) -> States:
    """Three queries: the initial state, and the changes up to the step."""
    try:
        initial = initial_state(run)
        changes = steps.state_details(run, index)
        if initial is None and not changes:
            return States()
        before, after = _walk(initial, changes, index)
    except (PatchError, StoredBytesMissing, RecordError) as problem:
        return States(note=f"The state cannot be put together: {problem}")
    return States(before=_tree(before), after=_tree(after))


def values_before(run: Run, index: int) -> Before:
    """Three queries, as for the view of the state; nothing where the state cannot be put together."""
    try:
        history = state_of(run, until=index).history
    except (StoredBytesMissing, RecordError):
        return {}
    found: dict[bool, list[str | None]] = {True: [], False: []}
    for applied in history.walk():
        if applied.step == index:
            is_kept = applied.op != "test" and applied.before is not MISSING
            found[applied.is_between].append(change_text(applied.before) if is_kept else None)
    return found


def _walk(state: JsonValue, changes: list[tuple[int, bytes]], index: int) -> tuple[JsonValue, JsonValue]:
    state = {} if state is None else state
    before = after = state
    for number, detail in changes:
        change = Fields(detail).value("state") or {}
        before = apply_patch(after, _operations(change, "before"))
        after = apply_patch(before, _operations(change, "after"))
        if number == index:
            return before, after
    return after, after


def _operations(change: JsonObject, name: str) -> list[JsonObject]:
    return change.get(name) or []


def _tree(state: JsonValue) -> Node:
    return build_tree(spelled.of_value(state), nodes=NODES)
