"""States that were taken on a person's own machine, beside the recorded ones.

The recorder writes a state down as a step of its own, a snapshot, every few steps. Two states belong together where the
same requests and calls came before them and both have the same label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from sessions_app.core.compare.json_diff import MISSING, Difference, differences
from sessions_app.core.compare.strict import Interner
from sessions_app.core.compare.volatile import SAME_KEYS, VOLATILE_RULES
from sessions_app.core.payload import JsonValue
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.replay.observed_pairs import Pair, Pairs
from sessions_app.core.replay.proof import PROVEN, Part, differs_at, not_comparable
from sessions_app.core.run import ModelCall, OtherCall, Run, Step, ToolCall, main_steps
from sessions_app.core.state import PatchError, after_steps

Place = tuple[int, int]
"""How many requests had been made to the model, and how many calls since the last of them."""
_START: Place = (0, 0)
_ENDED = "step_number"
_COUNTERS = (_ENDED, "iteration_count")
"""Of the recorder's own, unless the code says other ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenState:
    """A state as it was at one moment of a run."""

    step: int
    """The step that wrote it down."""
    label: str
    """Of the snapshot; empty for a state that a request or a call wrote down itself."""
    value: JsonValue
    counted: int
    """Steps before it that the agent made: no snapshots, and no requests inside of another step."""

    @property
    def is_settled(self) -> bool:
        """Whether every step before it had ended, as far as its own count of ended steps says."""
        return bool(self.label) and isinstance(self.value, dict) and self.value.get(_ENDED) == self.counted


@dataclass(kw_only=True, slots=True)
class TakenStates:
    """The states of a run by their places."""

    first: JsonValue
    """The one that the run began with; None where it is not known."""
    at: dict[Place, list[TakenState]] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    """Of each request and call of the loop, by its index."""

    @property
    def total(self) -> int:
        return sum(len(states) for states in self.at.values())


def states_of(run: Run, loop: Sequence[Step]) -> TakenStates:
    """`loop` are the requests and calls that count for places. Behind a change that does not fit, no state is known."""
    taken = TakenStates(first=None if run.initial_state is None else run.initial_state.value)
    looped = {step.index for step in loop}
    state, place, counted = taken.first, _START, 0
    for step in run.steps:
        if step.index in looped:
            place = (place[0] + 1, 0) if isinstance(step.call, ModelCall) else (place[0], place[1] + 1)
            taken.places[step.index] = place
        if step.state is None:
            counted += not _is_inner(step)
            continue
        try:
            state = after_steps(state, [step])
        except PatchError:
            break
        label = "" if step.index in looped else step.name
        found = TakenState(step=step.index, label=label, value=state, counted=counted)
        taken.at.setdefault(place, []).append(found)
    return taken


def _is_inner(step: Step) -> bool:
    return isinstance(step.call, OtherCall) and step.http is not None and step.parent is not None


class ObservedStates:
    """Goes along with the observed loop, and compares what was taken at each place."""

    def __init__(self, pairs: Pairs) -> None:
        answered = {answer.step for answer in pairs.plan.answers}
        loop = [step for step in main_steps(pairs.recorded) if _is_of_loop(step, answered)]
        self._recorded = states_of(pairs.recorded, loop)
        self._observed = states_of(pairs.observed, [pair.observed for pair in pairs.steps])
        self._calls = _most_calls(chain(self._recorded.places.values(), self._observed.places.values()))
        self._began_otherwise = self._difference_at_start()
        self._compared = 0
        self._wanted = 0
        """Recorded states at the places that were visited before anything differed."""
        self._differs_among_calls = False
        self.difference: Divergence | None = None
        """The first state that differs."""

    def at_start(self) -> Divergence | None:
        """What differs before the first step of the loop."""
        return self._compare(_START, is_same_so_far=True)

    def after(self, pair: Pair, *, is_same_so_far: bool) -> Divergence | None:
        """What differs after this step, and before the next one of the loop."""
        place = self._observed.places[pair.observed.index]
        recorded = None if pair.recorded is None else self._recorded.places.get(pair.recorded.index)
        if recorded is None or (recorded != place and not self._is_loose(place)):
            return None
        return self._compare(place, is_same_so_far=is_same_so_far)

    def part(self, *, is_whole: bool) -> Part:
        """What was proven of the state. `is_whole`: all steps of the recording stand beside observed ones."""
        if self._observed.first is None and not self._observed.at:
            return not_comparable("the code did not say its state: install(state=…) or state_of_deps does")
        if self._began_otherwise is not None:
            return not_comparable(f"the replay began with another state: {self._began_otherwise.path} differs")
        if self.difference is not None:
            return differs_at(self.difference)
        if self._differs_among_calls:
            return not_comparable(_AMONG_CALLS)
        if not self._recorded.total:
            return not_comparable("only the state at the beginning was recorded")
        wanted = self._recorded.total if is_whole else self._wanted
        if self._compared < wanted:
            return not_comparable(f"{self._compared} of {wanted} recorded states were observed at their places")
        return PROVEN

    def _difference_at_start(self) -> Difference | None:
        one, other = self._recorded.first, self._observed.first
        return None if one is None or other is None else _difference(one, other, "initial_state")

    def _compare(self, place: Place, *, is_same_so_far: bool) -> Divergence | None:
        """Calls of one answer may end in any order: what differs among them has to differ when all have ended, too."""
        if self._began_otherwise is not None or self.difference is not None:
            return None
        recorded = self._recorded.at.get(place, [])
        beside = _beside(recorded, self._observed.at.get(place, []))
        if is_same_so_far:
            self._wanted += len(recorded)
            self._compared += len(beside)
        is_loose = self._is_loose(place)
        for one, other in beside:
            found = _state_difference(one, other)
            if found is None:
                continue
            if not is_loose or (one.is_settled and other.is_settled):
                self.difference = found
                return found
            self._differs_among_calls = True
        return None

    def _is_loose(self, place: Place) -> bool:
        return place[1] > 0 and self._calls.get(place[0], 0) > 1


_AMONG_CALLS = "states between several calls of one answer differ, which may be the order in which the calls ended"


def _is_of_loop(step: Step, answered: set[int]) -> bool:
    """Requests that a client sent once more were made once by the loop."""
    return step.index in answered if isinstance(step.call, ModelCall) else isinstance(step.call, ToolCall)


def _most_calls(places: Iterable[Place]) -> Mapping[int, int]:
    """Number of calls that each answer asked for."""
    most: dict[int, int] = {}
    for requests, calls in places:
        most[requests] = max(calls, most.get(requests, 0))
    return most


def _beside(recorded: list[TakenState], observed: list[TakenState]) -> list[tuple[TakenState, TakenState]]:
    """States of the same label; where one side has more of them, its last ones count."""
    left = observed[::-1]
    found = []
    for one in reversed(recorded):
        position = next((i for i, other in enumerate(left) if other.label == one.label), None)
        if position is not None:
            found.append((one, left.pop(position)))
    return found[::-1]


def _state_difference(one: TakenState, other: TakenState) -> Divergence | None:
    found = _difference(one.value, _with_counters_of(one, other), "state")
    if found is None:
        return None
    left, right = (None if side is MISSING else side for side in (found.left, found.right))
    return Divergence(step=one.step, path=found.path, recorded=left, replayed=right)


def _with_counters_of(one: TakenState, other: TakenState) -> JsonValue:
    """The other's value. Counters that differ only as the numbers of steps before them do are the same."""
    if not isinstance(one.value, dict) or not isinstance(other.value, dict):
        return other.value
    more = other.counted - one.counted
    values = {key: (one.value.get(key), other.value.get(key)) for key in _COUNTERS}
    return {**other.value, **{key: left for key, (left, right) in values.items() if _is_same_count(left, right, more)}}


def _is_same_count(left: JsonValue, right: JsonValue, more: int) -> bool:
    return type(left) is int and type(right) is int and left + more == right


def _difference(recorded: JsonValue, observed: JsonValue, path: str) -> Difference | None:
    """The first value that differs. Keys of a state have no order."""
    if Interner(any_key_order=True).same(recorded, observed):
        return None
    found = differences(recorded, observed, ignore=VOLATILE_RULES, path=path)
    return next((each for each in found if each.note != SAME_KEYS and each.status != "not_comparable"), None)
