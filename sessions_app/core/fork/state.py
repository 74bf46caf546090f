"""The agent's state in a fork: as it was before, changed where the fork says so, and then as the recorded steps
that happened again changed it."""

from __future__ import annotations

from collections import defaultdict

from sessions_app.core.checkpoints import state_digest
from sessions_app.core.fork.changes import NewState
from sessions_app.core.fork.order import Order
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, StateChange
from sessions_app.core.state import PatchError, apply_patch, state_after


class ForkState:
    """`kept` is the last step that is as recorded."""

    def __init__(self, run: Run, order: Order, kept: int) -> None:
        self._run = run
        self._patches: dict[int, list[JsonObject]] = defaultdict(list)
        for change in order.changes:
            if isinstance(change, NewState):
                self._patches[change.step].extend(change.patch)
        self._at_step = order.at_step or 1
        self.value: JsonValue = _state_after(run, kept)
        self.digest = state_digest(self.value)
        """Of the state that the fork started from, SHA-256."""
        self.notes: list[str] = []

    def change(self, recorded_step: int | None, *, is_repeated: bool) -> StateChange | None:
        """What the next step of the fork does to the state. It stands where `recorded_step` stood, and did what that
        did to the state if it was answered as recorded."""
        recorded = self._run.steps[recorded_step - 1].state if recorded_step and is_repeated else None
        before = self._applied(self._patch(recorded_step), recorded_step)
        after = self._applied(list(recorded.after) if recorded else [], recorded_step)
        return StateChange(before=before, after=after) if before or after else None

    def _patch(self, recorded_step: int | None) -> list[JsonObject]:
        """A change at the fork's own step is made at once, a later one when its step happens again."""
        due = [step for step in self._patches if step <= self._at_step or step == recorded_step]
        return [operation for step in sorted(due) for operation in self._patches.pop(step)]

    def _applied(self, operations: list[JsonObject], step: int | None) -> tuple[JsonObject, ...]:
        """The operations, once they are made; none when they do not fit."""
        try:
            self.value = apply_patch({} if self.value is None and operations else self.value, operations)
        except PatchError as error:
            self.notes.append(f"A change of the state at step {step} does not fit any more: {error}")
            return ()
        return tuple(operations)


def _state_after(run: Run, step: int) -> JsonValue:
    try:
        return state_after(run, step)
    except PatchError:
        return None
