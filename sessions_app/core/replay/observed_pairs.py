"""An observed run and its recording, step by step beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sessions_app.core.replay.fixture_book import is_same_call, recorded_arguments
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan, make_plan
from sessions_app.core.run import ErrorInfo, Fixture, ModelCall, Run, Step, ToolCall, main_steps

Tools = Literal["frozen", "run"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A step of the observed loop, and the recorded one in whose place it stands."""

    observed: Step
    recorded: Step | None
    planned: PlannedAnswer | None = None
    """Of a request to the model: what was to be asked and answered."""

    @property
    def is_answered(self) -> bool:
        """Whether the recorded answer of a model step was taken: it was given, or failed as it had failed."""
        call, planned = self.observed.call, self.planned
        if not isinstance(call, ModelCall) or planned is None:
            return False
        failed_again = planned.response is None and same_error(planned.error, self.observed.error)
        return call.response is not None or failed_again


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """All steps of the observed loop, in their order."""

    plan: ReplayPlan
    observed: Run
    steps: tuple[Pair, ...]

    @property
    def recorded(self) -> Run:
        return self.plan.run

    @property
    def unused(self) -> tuple[PlannedAnswer, ...]:
        taken = {pair.planned.step for pair in self.steps if pair.planned and pair.is_answered}
        return tuple(answer for answer in self.plan.answers if answer.step not in taken)

    @property
    def left_over(self) -> list[Fixture]:
        taken = {pair.recorded.index for pair in self.steps if pair.recorded}
        return [each for each in self.plan.fixtures if each.step not in taken and each.has_ended]


def pair_steps(recorded: Run, observed: Run) -> Pairs:
    """A request stands beside the recorded one of the same number, a call beside the recorded one of the same id."""
    plan = make_plan(recorded)
    waiting_calls = [step for step in main_steps(recorded) if isinstance(step.call, ToolCall)]
    answers = iter(plan.answers)
    by_index = {step.index: step for step in recorded.steps}
    pairs = []
    for step in main_steps(observed):
        if isinstance(step.call, ModelCall):
            planned = next(answers, None)
            pairs.append(Pair(observed=step, recorded=by_index[planned.step] if planned else None, planned=planned))
        elif isinstance(step.call, ToolCall):
            pairs.append(Pair(observed=step, recorded=_take_call(waiting_calls, step.call)))
    return Pairs(plan=plan, observed=observed, steps=tuple(pairs))


def _take_call(left: list[Step], call: ToolCall) -> Step | None:
    found = next((step for step in left if _is_call(step.call, call)), None)
    if found is not None:
        left.remove(found)
    return found


def _is_call(recorded: object, call: ToolCall) -> bool:
    """An id decides; recordings without ids are matched by what was called."""
    assert isinstance(recorded, ToolCall)
    if recorded.call_id is not None and call.call_id is not None:
        return (recorded.call_id, recorded.tool_name) == (call.call_id, call.tool_name)
    return recorded.tool_name == call.tool_name and is_same_call(recorded, recorded_arguments(call.arguments))


def same_error(recorded: ErrorInfo | None, now: ErrorInfo | None) -> bool:
    if recorded is None or now is None:
        return recorded is now
    return recorded.allows(now)
