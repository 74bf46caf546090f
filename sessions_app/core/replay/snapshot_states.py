"""States of a replay where the recording holds them as snapshots: each is compared where one was taken.

The recorder writes a snapshot as a step of its own, every few steps. Its counters and lists belong to the recorder; all
else is what the team's code says of its state (docs/recording.md, "State").
"""

from __future__ import annotations

from sessions_app.core.formats.snapshots import SNAPSHOT_KEYS
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.observed import Observations, StateLeft
from sessions_app.core.run import OtherCall, Run, StateChange, Step
from sessions_app.core.state import after_steps, diff_state, read_pointer

_ENDED = "step_number"


def _has_snapshots(run: Run) -> bool:
    """Also where the run ended before the first one was due: then it says its state at the beginning alone."""
    first = run.initial_state.value if run.initial_state else None
    is_snapshot = isinstance(first, dict) and first.keys() >= SNAPSHOT_KEYS
    return is_snapshot or any(isinstance(step.call, OtherCall) and step.state is not None for step in run.steps)


def states_at_snapshots(recorded: Run, seen: Observations) -> SnapshotStates | None:
    """None where the states were not taken, or stand with the steps themselves."""
    return SnapshotStates(recorded, seen) if seen.states == "taken" and _has_snapshots(recorded) else None


class SnapshotStates:
    """Asked for one recorded step after the other."""

    def __init__(self, recorded: Run, seen: Observations) -> None:
        ended = [*((each.step, each.left) for each in seen.requests), *((each.step, each.left) for each in seen.calls)]
        self._left = {step: left for step, left in ended if left is not None}
        """What each request and each call left behind."""
        self._now = StateLeft(order=-1, value=seen.first_state)
        self._begun = 0
        """Recorded steps so far that are no snapshots."""
        self._recorded = self._made = None if recorded.initial_state is None else recorded.initial_state.value

    def change_at(self, step: Step) -> StateChange | None:
        """What the snapshot at this step says happened since the one before it."""
        self._now = max(self._now, self._left.get(step.index, self._now), key=lambda left: left.order)
        self._recorded = after_steps(self._recorded, [step])
        if step.state is None:
            self._begun += 1
            return None
        before = self._made
        # Calls of one answer may end in any order, so that between them no state belongs to the recorded one.
        self._made = self._recorded if self._is_among_calls() else _snapshot(self._recorded, self._now.value)
        operations = diff_state(before, self._made)
        return StateChange(after=tuple(operations)) if operations else None

    def _is_among_calls(self) -> bool:
        """Whether fewer steps had ended when the snapshot was taken than had begun; it counts them, unless the team's
        code says a count of its own."""
        is_own = isinstance(self._now.value, dict) and _ENDED in self._now.value
        ended = self._recorded.get(_ENDED) if isinstance(self._recorded, dict) and not is_own else None
        return type(ended) is int and ended < self._begun


def _snapshot(recorded: JsonValue, now: JsonValue) -> JsonValue:
    if not isinstance(recorded, dict) or not isinstance(now, dict):
        return now
    # Of what every snapshot has, that which the code says nothing of is as it was recorded.
    kept = {key: value for key, value in recorded.items() if key in SNAPSHOT_KEYS}
    return {**kept, **_named(now)}


def of_recorder(change: StateChange | None, code: JsonValue) -> StateChange | None:
    """The part of a snapshot's change that is none of the code, whose state is `code`: counters and lists that the
    recorder keeps by itself."""
    own = SNAPSHOT_KEYS - _named(code).keys() if isinstance(code, dict) else SNAPSHOT_KEYS
    operations = change.after if change else ()
    kept = tuple(each for each in operations if own.issuperset(read_pointer(each["path"])[:1] or [""]))
    return StateChange(after=kept) if kept else None


def _named(state: JsonObject) -> JsonObject:
    """By the names that a snapshot has."""
    return {"context_variables" if key == "context" else key: value for key, value in state.items()}
