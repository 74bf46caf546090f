"""From what a fork's loop did to its verdict, the run that it made, and the facts beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from sessions_app.core.compare.json_diff import MISSING, differences
from sessions_app.core.compare.runs import Comparison, compare_runs, rules_for
from sessions_app.core.compare.runs import Divergence as Difference
from sessions_app.core.fork.expected_words import OF_CODE_NOT_RUN, unproven_source
from sessions_app.core.fork.order import Order
from sessions_app.core.fork.plan import ForkPlan
from sessions_app.core.fork.produce import forked_run
from sessions_app.core.fork.proof import has_same_outcome, prove_fork
from sessions_app.core.fork.state import ForkState, rules_of
from sessions_app.core.fork.stops import Stop, Stopped
from sessions_app.core.judge.outcome import is_decided_by_code
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.judge.verdict import judge
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.fixture_book import FixtureMiss, recorded_arguments
from sessions_app.core.replay.missed_calls import missed_facts, missed_field
from sessions_app.core.replay.observed import Divergence, Observations, Result, absent_side
from sessions_app.core.replay.other_outcomes import other_outcome
from sessions_app.core.replay.played import Played
from sessions_app.core.replay.proof import part_of
from sessions_app.core.run import REPEATED, Run, Step, ToolCall, answered
from sessions_app.core.unproven_outcomes import why_unproven, with_unproven_outcome


def conclude_fork(plan: ForkPlan, order: Order, played: Played, state: ForkState, *, run_id: str) -> tuple[Result, Run]:
    seen, ending = played.observations, played.ending
    made = _without_outcome_of_code(plan, order, state.fitted(forked_run(plan, order, seen, run_id=run_id)))
    ending = replace(ending, stopped=_placed(ending.stopped, made))
    facts = _facts(plan, order, made, state, ending.stopped)
    if ending.miss is not None:
        facts = {**facts, **missed_facts(ending.miss)}
    if ending.stopped is not None:
        facts = {**facts, "first_difference": _place(_first_difference(_compared(plan, order, made), order, played))}
        return _stopped(plan, ending.stopped, ending.miss, facts, seen), made
    if ending.miss is not None:
        found = _missed(ending.miss, len(made.steps) + 1)
        return Result(verdict="fixture_missing", divergence=found, facts=facts, observations=seen), made
    comparison = _compared(plan, order, made)
    limit = played.limit if order.agent is not None else judge(plan.run).limit
    divergence = _first_difference(comparison, order, played) or other_outcome(plan.run, ending)
    proof = prove_fork(replace(played, limit=limit, kept=plan.kept), divergence)
    facts = {**facts, "proof": proof.to_json()}
    if divergence is not None and limit is not None and _is_of_limit(divergence, limit, made, plan.kept):
        return _not_compared(plan, limit.message, facts, seen, at=_place_in(divergence)), made
    if divergence is not None:
        if comparison.divergence is not None and comparison.divergence.path == divergence.path:
            facts = {**facts, **absent_side(comparison.divergence.left, comparison.divergence.right)}
        if order.agent is None and _is_unheard(comparison, made.steps[plan.kept :]):
            facts = _without_difference(facts)
        return Result(verdict="diverged", divergence=divergence, facts=facts, observations=seen), made
    if not proof.is_reproduction:
        return _not_compared(plan, f"{(proof.outcome.reason or '').capitalize()}.", facts, seen), made
    return Result(verdict="reproduced", facts=_without_difference(facts), observations=seen), made


def _without_outcome_of_code(plan: ForkPlan, order: Order, made: Run) -> Run:
    """Functions that make the output are frozen with the tools; a rebuilt agent has none of the team's code."""
    has_function = plan.run.agent.output_function is not None and not order.tools.run
    is_rebuilt = order.agent is None and is_decided_by_code(plan.run)
    depends = made.status == "ok" and (has_function or is_rebuilt)
    return with_unproven_outcome(made, OF_CODE_NOT_RUN) if depends else made


def _without_difference(facts: JsonObject) -> JsonObject:
    """What was expected came, or did not, without the change as well."""
    expectation = facts["expectation"]
    if expectation is None or expectation["source"] == "code_not_run":
        return facts
    return {**facts, "expectation": {**expectation, "source": "no_difference"}}


def _is_unheard(comparison: Comparison, new: Sequence[Step]) -> bool:
    """Whether the model was asked for nothing that it was not asked for then, and the outcome is the recorded one."""
    asked = (step for step in new if step.kind == "model")
    return has_same_outcome(comparison) and all(step.source == "recorded" for step in asked)


def _placed(stopped: Stopped | None, made: Run) -> Stopped | None:
    """By the number that the step has in the fork's run. While the loop runs, calls of one answer come in any order."""
    if stopped is None:
        return None
    stop = stopped.stop
    waits = (step.index for step in reversed(made.steps) if step.source == "unknown" and _is_of(step, stop))
    return replace(stopped, stop=replace(stop, step=next(waits, stop.step)))


def _is_of(step: Step, stop: Stop) -> bool:
    if isinstance(step.call, ToolCall):
        return (stop.kind, stop.name, stop.call_id) == ("tool", step.call.tool_name, step.call.call_id)
    return step.kind == stop.kind


def _is_of_limit(found: Divergence, limit: Reason, made: Run, kept: int) -> bool:
    """Whether a replay of the parent could not show that either: what the runs came to, or what lies where the
    recording can no longer be replayed, as long as the fork was given nothing but recorded answers."""
    if part_of(found.path) == "outcome":
        return True
    is_behind = limit.step is None or (found.step is not None and found.step >= limit.step)
    new = (step for step in made.steps[kept : found.step] if step.kind in ("model", "tool"))
    return is_behind and all(step.source in REPEATED for step in new)


def _place_in(found: Divergence) -> int | None:
    return None if part_of(found.path) == "outcome" else found.step


def _not_compared(
    plan: ForkPlan, reason: str, facts: JsonObject, seen: Observations, *, at: int | None = None
) -> Result:
    """The course is the same as far as it goes, and what comes then, or what the runs came to, cannot be compared."""
    step = at or len(plan.run.steps) + 1
    path = "output" if at is None else f"steps[{step}]"
    found = Divergence(step=step, path=path, recorded=None, replayed=None)
    limit = {"step": step, "code": "not_compared", "reason": reason}
    return Result(verdict="unknown_from_step", divergence=found, facts={**facts, "limit": limit}, observations=seen)


def _stopped(
    plan: ForkPlan, stopped: Stopped, miss: FixtureMiss | None, facts: JsonObject, seen: Observations
) -> Result:
    if stopped.why != "unknown":
        return Result(verdict="paused", facts=facts, observations=seen, stopped=stopped.to_json())
    return Result(
        verdict="unknown_from_step",
        divergence=_unknown(plan, stopped, seen) if miss is None else _missed(miss, stopped.stop.step),
        facts=facts,
        observations=seen,
        stopped=stopped.to_json(),
    )


def _unknown(plan: ForkPlan, stopped: Stopped, seen: Observations) -> Divergence:
    """What was asked for, against the recorded call of the same tool that comes nearest; of a request to the model,
    against the answer that was recorded in its place."""
    stop = stopped.stop
    if stop.kind == "model":
        then, now = _answer_in_place(plan.run, seen), "no recorded answer to this request"
        return Divergence(step=stop.step, path="response", recorded=then, replayed=now)
    nearest = _nearest(plan.run, stop.name, stop.arguments)
    if nearest is None:
        return Divergence(step=stop.step, path="args", recorded=None, replayed=stop.arguments)
    path, left, right = nearest
    return Divergence(step=stop.step, path=path, recorded=left, replayed=right)


def _answer_in_place(run: Run, seen: Observations) -> JsonValue:
    """None where the recording asked its model no more."""
    index = seen.requests[-1].step if seen.requests else 0
    answer = answered(run.steps[index - 1]) if index else None
    return None if answer is None else answer.parsed


def _missed(miss: FixtureMiss, step: int) -> Divergence:
    """What the tool itself, or what is not a tool, came to that has no answer."""
    path, recorded, replayed = missed_field(miss)
    return Divergence(step=step, path=path, recorded=recorded, replayed=replayed)


def _nearest(run: Run, name: str, arguments: JsonValue) -> tuple[str, JsonValue, JsonValue] | None:
    """The first differing argument of the recorded call that differs least."""
    found = [
        list(differences(recorded_arguments(call.arguments), arguments, path="args")) for call in _calls_of(run, name)
    ]
    different = sorted((each for each in found if each), key=len)
    if not different:
        return None
    first = different[0][0]
    return first.path, _or_none(first.left), _or_none(first.right)


def _calls_of(run: Run, name: str) -> list[ToolCall]:
    return [call for _, call in run.tool_calls if call.tool_name == name]


def _or_none(value: JsonValue) -> JsonValue:
    return None if value is MISSING else value


def _compared(plan: ForkPlan, order: Order, made: Run) -> Comparison:
    return compare_runs(plan.run, made, (*rules_for(plan.run, made), *rules_of(order)))


def _place(found: Divergence | None) -> JsonObject | None:
    return None if found is None else {"step": found.step, "path": found.path}


def _first_difference(comparison: Comparison, order: Order, played: Played) -> Divergence | None:
    found = comparison.divergence
    if order.agent is not None and (seen := _seen_by_replay(found, played)) is not None:
        return seen
    if found is None:
        return None
    step = found.right_step or found.left_step
    return Divergence(
        step=step.index if step else None,
        path=found.path,
        recorded=_or_none(found.left),
        replayed=_or_none(found.right),
    )


def _seen_by_replay(found: Difference | None, played: Played) -> Divergence | None:
    """What a replay of the team's own code names in the place of what the two runs show: the loop and the tools are
    watched while they run. None where the runs differ before that."""
    step, seen = None if found is None else found.left_step or found.right_step, played.divergence
    if seen is not None:
        return seen if step is None or (seen.step or 0) <= step.index else None
    is_of_end = found is not None and step is None and played.ending.is_regular
    return other_outcome(played.plan.run, played.ending) if is_of_end else None


def _facts(plan: ForkPlan, order: Order, made: Run, state: ForkState, stopped: Stopped | None) -> JsonObject:
    new, answered = made.steps[plan.kept :], _answered(made, stopped)
    links = [_link(step) for step in new if "borrowed_from" in step.extra]
    return {
        "sources": dict(Counter(step.source for step in answered if step.kind in ("model", "tool"))),
        "started_from": {
            "step": order.at_step,
            "state_digest": state.digest,
            "history_digest": plan.recorded.digest,
            "how": "history",
        },
        "lint": [*plan.lint, *state.notes],
        "steps_after": sum(step.kind != "other" and step.index > (order.at_step or 0) for step in made.steps),
        "links": links,
        "expectation": _expectation(order, made, new),
    }


def _link(step: Step) -> JsonObject:
    lender = step.extra["borrowed_from"]
    return {"step": step.index, "source": step.source, "run_id": lender["run_id"], "from_step": lender["step"]}


def _answered(made: Run, stopped: Stopped | None) -> tuple[Step, ...]:
    """Without the step that a paused fork is about to make."""
    is_paused = stopped is not None and stopped.why != "unknown"
    return made.steps[: stopped.stop.step - 1] if stopped is not None and is_paused else made.steps


def _expectation(order: Order, made: Run, new: Sequence[Step]) -> JsonObject | None:
    if order.expect is None:
        return None
    is_of_code = why_unproven(made) is not None
    judged = order.expect.judge(made, order.at_step or 0, is_decided_by_code=is_of_code)
    source = "code_not_run" if is_of_code and judged.met is None else unproven_source(made, new)
    return {"words": order.expect.words, "met": judged.met, "seen": judged.words, "source": source}
