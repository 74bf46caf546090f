"""From how the loop ended to the verdict of the replay."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.fork.stops import Stopped
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.fixture_book import FixtureMiss, recorded_arguments
from sessions_app.core.replay.observed import Divergence, Observations, Result
from sessions_app.core.replay.outputs import can_be_made_of
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan
from sessions_app.core.run import ErrorInfo, Fixture, broke_off_at


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """Why the loop stopped."""

    output: Payload | None = None
    error: ErrorInfo | None = None
    is_open: bool = False
    ran_past: int | None = None
    """Number of requests that had been answered when one more was made."""
    miss: FixtureMiss | None = None
    stopped: Stopped | None = None
    """It waits at a stop."""

    @property
    def is_regular(self) -> bool:
        """Whether the loop came to an end of its own, good or bad."""
        return self.ran_past is None and self.miss is None and self.stopped is None


def conclude(
    plan: ReplayPlan,
    observations: Observations,
    ending: Ending,
    divergence: Divergence | None,
    unused: tuple[PlannedAnswer, ...],
    left_over: list[Fixture],
    facts: JsonObject,
) -> Result:
    """The first thing that went another way decides the verdict."""
    facts = {**facts, **_source_facts(plan, observations)}
    at = broke_off_at(plan.run)
    if at is not None and divergence is None and _is_where_it_broke_off(at, plan, ending, unused, left_over):
        return _broke_off(at, observations, facts)
    if ending.ran_past is not None and divergence is None:
        return _ran_past(plan, observations, ending.ran_past, facts)
    if ending.miss is not None and divergence is None:
        return _missed(plan, observations, ending.miss, facts)
    if divergence is None and ending.is_regular and (unused or left_over):
        return _left_over(observations, unused, left_over, facts)
    divergence = divergence or _other_end(plan, ending)
    verdict = "reproduced" if divergence is None else "diverged"
    return Result(verdict=verdict, divergence=divergence, facts=facts, observations=observations)


def _is_where_it_broke_off(
    at: int, plan: ReplayPlan, ending: Ending, unused: tuple[PlannedAnswer, ...], left_over: list[Fixture]
) -> bool:
    """The loop did all that is recorded before that step, and did not ask for anything else."""
    rest = [*(answer.step for answer in unused), *(fixture.step for fixture in left_over)]
    if any(step < at for step in rest):
        return False
    if ending.miss is None:
        return True
    return any(step.index >= at and call.call_id == ending.miss.call_id for step, call in plan.run.tool_calls)


def _broke_off(at: int, observations: Observations, facts: JsonObject) -> Result:
    found = Divergence(step=at, path=f"steps[{at}]", recorded=None, replayed="what came next was not recorded")
    facts = {**facts, "broke_off_at": at}
    return Result(verdict="unknown_from_step", divergence=found, facts=facts, observations=observations)


def _ran_past(plan: ReplayPlan, observations: Observations, cursor: int, facts: JsonObject) -> Result:
    """The step at which an answer was wanted that is not there."""
    is_recorded = cursor < len(plan.answers)
    step = plan.answers[cursor].step if is_recorded else len(plan.run.steps) + 1
    asked = Divergence(step=step, path="response", recorded=None, replayed="a further model answer was asked for")
    return Result(verdict="ran_past_recording", divergence=asked, facts=facts, observations=observations)


def _missed(plan: ReplayPlan, observations: Observations, miss: FixtureMiss, facts: JsonObject) -> Result:
    step = next((s.index for s, c in plan.run.tool_calls if c.call_id and c.call_id == miss.call_id), None)
    nearest = [{"step": f.step, "arguments": recorded_arguments(f.call.arguments)} for f in miss.nearest]
    asked: JsonObject = {"tool": miss.tool_name, "arguments": miss.arguments, "call_id": miss.call_id}
    recorded = nearest[0]["arguments"] if nearest else None
    return Result(
        verdict="fixture_missing",
        divergence=Divergence(
            step=step,
            path="result" if recorded == miss.arguments else "arguments",
            recorded=None if recorded == miss.arguments else recorded,
            replayed=miss.arguments,
        ),
        facts={**facts, "asked_for": asked, "nearest": nearest},
        observations=observations,
    )


def _left_over(
    observations: Observations, unused: tuple[PlannedAnswer, ...], left_over: list[Fixture], facts: JsonObject
) -> Result:
    steps = sorted([answer.step for answer in unused] + [fixture.step for fixture in left_over])
    first = Divergence(step=steps[0], path=f"steps[{steps[0]}]", recorded="an answer", replayed=None)
    return Result(
        verdict="answers_left_over",
        divergence=first,
        facts={**facts, "left_over": steps},
        observations=observations,
    )


def _other_end(plan: ReplayPlan, ending: Ending) -> Divergence | None:
    """The output or the error differs, although every request was equal."""
    run, last = plan.run, len(plan.run.steps)
    if ending.error is not None or run.error is not None:
        return _other_error(run.error, ending.error, last)
    if run.output is None or (ending.output is None and ending.is_open):
        return None
    if run.agent.output_function is not None and ending.output is not None:
        return None
    recorded, replayed = run.output.parsed, ending.output.parsed if ending.output else None
    if ending.output is not None and can_be_made_of(run, run.output, ending.output):
        return None
    return Divergence(step=last, path="output", recorded=recorded, replayed=replayed)


def _other_error(recorded: ErrorInfo | None, replayed: ErrorInfo | None, last: int) -> Divergence | None:
    """An error whose text was not captured agrees with any."""
    if recorded is None or replayed is None:
        return Divergence(step=last, path="error", recorded=_words(recorded), replayed=_words(replayed))
    for name in ("type", "message"):
        left, right = getattr(recorded, name), getattr(replayed, name)
        if left is not None and right is not None and left != right:
            return Divergence(step=last, path=f"error.{name}", recorded=left, replayed=right)
    return None


def _words(error: ErrorInfo | None) -> JsonValue:
    return None if error is None else {"type": error.type, "message": error.message}


def _source_facts(plan: ReplayPlan, observations: Observations) -> JsonObject:
    """What was answered from the recording, and what was only read."""
    played_back = [s.name for s in plan.run.steps if s.kind not in ("model", "tool")]
    return {
        "sources": {"recorded": len(observations.calls) + _answered(plan, observations)},
        "played_back": played_back,
        "tools_are_recorded": plan.tools_are_recorded,
        "output_function": plan.run.agent.output_function,
    }


def _answered(plan: ReplayPlan, observations: Observations) -> int:
    return min(len(observations.requests), len(plan.answers))
