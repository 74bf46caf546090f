"""The agent's state in a fork: as it was before, changed where the fork says so, and then as the recorded steps
that happened again changed it."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from sessions_app.core.checkpoints import state_digest
from sessions_app.core.compare.volatile import VolatileRule, VolatileRules
from sessions_app.core.fork.changes import NewState
from sessions_app.core.fork.order import Order
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, StateChange, Step
from sessions_app.core.state import PatchError, after_steps, apply_patch, state_after


class ForkState:
    """`kept` is the last step that is as recorded."""

    def __init__(self, run: Run, order: Order, kept: int) -> None:
        self._run = run
        self._patches: dict[int, list[JsonObject]] = defaultdict(list)
        for change in order.changes:
            if isinstance(change, NewState):
                self._patches[change.step].extend(change.patch)
        self._is_changed = bool(self._patches)
        self._kept = kept
        self._before: list[JsonObject] = []
        self.value: JsonValue = _state_after(run, kept)
        self.digest = state_digest(self.value)
        """Of the state that the fork started from, SHA-256."""
        self.notes: list[str] = []
        self._recorded: frozenset[str | None] = frozenset()
        """Of the states that the recorded snapshots hold."""

    def reach(self, step: int) -> None:
        """The fork comes to this step of its own: what is to be changed up to here is changed."""
        due = [each for each in sorted(self._patches) if each <= step]
        self._before += self._applied([op for each in due for op in self._patches.pop(each)], step)

    def change(self, recorded_step: int | None, *, is_repeated: bool) -> StateChange | None:
        """What the step that was reached does to the state. It stands where `recorded_step` stood, and did what that
        did to the state if it was answered as recorded."""
        recorded = self._run.steps[recorded_step - 1].state if recorded_step and is_repeated else None
        after = self._applied(list(recorded.after) if recorded else [], recorded_step)
        before, self._before = self._before, []
        return StateChange(before=tuple(before), after=tuple(after)) if before or after else None

    def fitted(self, made: Run) -> Run:
        """The run of the fork. Snapshots that were played back say what happened to the recorded state; of that the
        changed one takes what fits. A snapshot of a state that was never recorded is one of the change."""
        if not self._is_changed:
            return made
        self.value = _state_after(made, self._kept)
        self._recorded = _snapshot_digests(self._run)
        return replace(made, steps=(*made.steps[: self._kept], *map(self._fitted, made.steps[self._kept :])))

    def _fitted(self, step: Step) -> Step:
        change = step.state
        if change is None:
            return step
        before, after = (tuple(self._applied(list(each), step.index)) for each in (change.before, change.after))
        fitted = replace(step, state=StateChange(before=before, after=after) if before or after else None)
        is_recorded = step.kind != "other" or step.source != "recorded" or state_digest(self.value) in self._recorded
        return fitted if is_recorded else replace(fitted, source="by_hand")

    def _applied(self, operations: list[JsonObject], step: int | None) -> list[JsonObject]:
        """Those that fit the state as it is now."""
        fitting = []
        for operation in operations:
            try:
                self.value = apply_patch({} if self.value is None else self.value, [operation])
            except PatchError as error:
                self.notes.append(f"A change of the state at step {step} does not fit any more: {error}")
            else:
                fitting.append(operation)
        return fitting


def _snapshot_digests(run: Run) -> frozenset[str | None]:
    value, found = _state_after(run, 0), set()
    for step in run.steps:
        value = after_steps(value, [step])
        if step.kind == "other" and step.state is not None:
            found.add(state_digest(value))
    return frozenset(found)


def _state_after(run: Run, step: int) -> JsonValue:
    try:
        return state_after(run, step)
    except PatchError:
        return None


CHANGED_STATE = VolatileRule(
    key="changed-by-the-fork",
    name="state of a fork that changes it",
    why="The order changed it, and what became of it since belongs to the change.",
    ending="",
    place=re.compile(r"^(?:input_)?state\b"),
)


def rules_of(order: Order) -> VolatileRules:
    """With a state that somebody changed, no recorded one is left to hold another against: where the change takes
    effect, the model or a tool is asked for something else."""
    return (CHANGED_STATE,) if order.changes_state else ()
