"""The agent's state before and after a step, put together from the changes of the steps before it."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.errors import RecordError, StoredBytesMissing
from sessions_app.core.formats.fields import Fields
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.state import PatchError, apply_patch
from sessions_app.mapping.load import initial_state
from sessions_app.models import Run
from sessions_app.queries import steps
from sessions_app.web.render import spelled
from sessions_app.web.render.tree import Node, build_tree

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
