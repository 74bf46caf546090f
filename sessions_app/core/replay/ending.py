"""From how the loop ended to what was proven, and so to the verdict of the replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from sessions_app.core.compare.runs import call_value
from sessions_app.core.history import History
from sessions_app.core.judge.outcome import MESSAGE_FROM_CODE
from sessions_app.core.judge.reading import object_of
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.judge.unreadable import UNREADABLE
from sessions_app.core.judge.verdict import Verdict
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.frozen_tools import changed_by_frozen_tool, possible_cause
from sessions_app.core.replay.missed_calls import answered_last, decided_otherwise, missed, ran_past
from sessions_app.core.replay.observed import Divergence, Observations, Result
from sessions_app.core.replay.other_outcomes import other_outcome
from sessions_app.core.replay.plan import ReplayPlan, played_steps
from sessions_app.core.replay.played import Played, Trouble
from sessions_app.core.replay.proof import (
    part_of,
)
from sessions_app.core.replay.proving import proof_of
from sessions_app.core.replay.refusal_words import refusal_in_words
from sessions_app.core.run import Run, Step, ToolCall


def conclude(played: Played, facts: JsonObject) -> Result:
    """The first thing that went another way decides the verdict; where nothing did, the run is reproduced."""
    found = _first_trouble(played)
    proof = proof_of(played, found)
    more = {**found.facts, **_snapshots_before(played.plan.run, found.step)} if found else {}
    return Result(
        verdict=found.verdict if found else "reproduced",
        divergence=found.divergence if found else None,
        facts={**facts, **_source_facts(played.plan, played.observations), **more, "proof": proof.to_json()},
        observations=played.observations,
    )


def conclude_code(
    played: Played, limits: Sequence[Reason], facts: JsonObject, *, doubtful: Reason | None = None
) -> Result:
    """The same of the team's own code."""
    limit = limit_of_code(played, limits, doubtful or changed_unseen(played))
    result = conclude(replace(played, limit=limit), facts)
    is_frozen = result.verdict == "diverged" and not played.observations.has_run_tools
    cause = possible_cause(played.plan.run, result.divergence) if is_frozen else None
    return result if cause is None else replace(result, facts={**result.facts, "possible_cause": cause})


def changed_unseen(played: Played) -> Reason | None:
    """What a tool that did not run may have changed."""
    return None if played.observations.has_run_tools else changed_by_frozen_tool(played.plan.run, played.divergence)


def limit_of_code(played: Played, limits: Sequence[Reason], doubtful: Reason | None) -> Reason | None:
    """A message that code put there, be it a tool or not, its code of today may have put there again: where the loop
    came past that place, it is no limit. What is `doubtful` is one where anything differs."""
    if doubtful is not None and _trouble(played) is not None:
        limits = [doubtful, *limits]
    past = [limit for limit in limits if limit.code == MESSAGE_FROM_CODE and _came_past(played, limit)]
    return next((limit for limit in limits if limit not in past), None)


def _came_past(played: Played, limit: Reason) -> bool:
    found = _trouble(played)
    return found is None or (found.step or 0) > (limit.step or 0)


def _snapshots_before(run: Run, step: int | None) -> JsonObject:
    """How many steps before this one are snapshots: they have numbers of their own, and lists leave them out."""
    count = sum("snapshot" in each.extra for each in run.steps[: (step or 1) - 1])
    return {"snapshots_before": count} if count else {}


def _first_trouble(played: Played) -> Trouble | None:
    found, limit = _trouble(played), played.limit
    if limit is None or limit.step is None:
        return found
    if found is not None and _says_more(found, limit):
        return replace(found, facts={**found.facts, "limit": limit_facts(limit)})
    is_earlier = found is not None and not found.is_of_outcome and (found.step or limit.step) < limit.step
    if is_earlier or any(step < limit.step for step in played.rest):
        return found
    return _at_limit(played, limit)


def _says_more(found: Trouble, limit: Reason) -> bool:
    """Whether what the loop asked for, or came to, tells more than that the recording ends there."""
    if limit.code == "broke_off" or limit.code in UNREADABLE:
        return False
    if found.verdict in ("fixture_missing", "ran_past_recording"):
        return found.step == limit.step
    if limit.code == "call_contradicted" and part_of(found.divergence.path) == "requests":
        return False  # in which words the loop refuses a tool that nobody recorded
    if limit.code in ("answer_contradicted", "past_contradicted", "call_contradicted"):
        return found.verdict == "diverged" and found.step == limit.step and not found.is_of_outcome
    return limit.code == "output_differs" and found.is_of_outcome


def cannot_begin(judged: Verdict) -> Result:
    """A cold run holds nothing to begin with; why, the judge has said."""
    return Result(verdict="could_not_run", error=judged.words)


def limit_place(limit: Reason) -> Divergence:
    return Divergence(step=limit.step, path=f"steps[{limit.step}]", recorded=None, replayed=None)


def limit_facts(limit: Reason) -> JsonObject:
    return {"step": limit.step, "code": limit.code, "reason": limit.message, "fix": limit.fix}


def _at_limit(played: Played, limit: Reason) -> Trouble:
    found = limit_place(limit)
    outcome = other_outcome(played.plan.run, played.ending) if (limit.step or 0) > played.steps else None
    if outcome is not None and played.ending.is_regular:
        found = replace(outcome, step=limit.step)
    return Trouble(verdict="unknown_from_step", divergence=found, facts={"limit": limit_facts(limit)})


def _trouble(played: Played) -> Trouble | None:
    plan, ending = played.plan, played.ending
    unasked = _unasked(played)
    if unasked is not None:
        return Trouble(verdict="diverged", divergence=unasked, facts={})
    if played.divergence is not None:
        return Trouble(verdict="diverged", divergence=played.divergence, facts={})
    if ending.ran_past is not None:
        refused = _refused_output(played)
        if refused is not None:
            return Trouble(verdict="diverged", divergence=refused, facts={})
        return ran_past(plan, ending.ran_past)
    if ending.miss is not None:
        return decided_otherwise(played, ending.miss) or missed(plan, ending.miss, behind=answered_last(played))
    other = other_outcome(plan.run, ending)
    if played.rest:
        return _left_over(played, other)
    return None if other is None else Trouble(verdict="diverged", divergence=other, facts={})


def _unasked(played: Played) -> Divergence | None:
    """Where a request differs, a call in front of it that no recorded answer asks for: the loop did not make it."""
    end = played.divergence.step if played.divergence is not None else None
    if end is None or part_of(played.divergence.path if played.divergence else "") != "requests":
        return None
    asked = {call_id for answer in played.plan.answers for call_id in answer.asked}
    before = (fixture for fixture in played.left_over if fixture.step < end)
    first = next((each for each in before if each.call.call_id and each.call.call_id not in asked), None)
    if first is None or first.call.call_id in played.plan.run.decided:
        return None
    step = played.plan.run.steps[first.step - 1]
    return Divergence(step=step.index, path=f"steps[{step.index - 1}]", recorded=call_value(step), replayed=None)


def _left_over(played: Played, other: Divergence | None) -> Trouble:
    """Of an error that ended the loop early, the answers behind it are what follows."""
    first = played.rest[0]
    facts: JsonObject = {"left_over": played.rest}
    if played.ending.error is not None and other is not None:
        at_error = replace(other, step=min(first, _last_seen(played.observations) + 1))
        return Trouble(verdict="diverged", divergence=at_error, facts=facts)
    accepted = _accepted_output(played) or _accepted_text(played)
    if accepted is not None:
        return Trouble(verdict="diverged", divergence=accepted, facts=facts)
    held = "an answer" if _has_answer(played.plan.run.steps[first - 1]) else "an error"
    found = Divergence(step=first, path=f"steps[{first}]", recorded=held, replayed=None)
    return Trouble(verdict="answers_left_over", divergence=found, facts=facts)


def _accepted_output(played: Played) -> Divergence | None:
    """An output that the team's code refused then and let through now: the loop ended with it, and says so."""
    return _other_output(played, played.observations.final, was="retried", is_now=_is_answer)


def _refused_output(played: Played) -> Divergence | None:
    """An output that the team's code let through then and refuses now: the request that nobody answers says why."""
    asked = played.observations.requests[-1:]
    history = asked[0].history if asked and asked[0].response is None else None
    return _other_output(played, history, was="success", is_now=_is_refusal)


def _other_output(
    played: Played, told: History | None, *, was: str, is_now: Callable[[JsonObject], bool]
) -> Divergence | None:
    """The first output of the newest answer that ended in this way then, and otherwise by what is told of it now."""
    last = answered_last(played)
    outputs = {
        call.call_id: (step, call)
        for step, call in played.plan.run.tool_calls
        if last is not None and step.parent == last.step and call.is_output and call.outcome == was
    }
    for part in object_of(told.message).get("parts") or [] if told is not None else []:
        if part.get("tool_call_id") in outputs and is_now(part):
            step, call = outputs[part["tool_call_id"]]
            words = None if call.result is None else refusal_in_words(call.result.value)
            now = refusal_in_words(part.get("content"))
            return Divergence(step=step.index, path="result", recorded=words, replayed=now)
    return None


def _is_answer(part: JsonObject) -> bool:
    return part.get("part_kind") == "tool-return"


def _is_refusal(part: JsonObject) -> bool:
    return part.get("part_kind") == "retry-prompt" or part.get("outcome") == "retried"


def _accepted_text(played: Played) -> Divergence | None:
    """The same of a text: why it was refused is what the next request told the model."""
    asked = next((answer for answer in played.unused if answer.step == played.rest[0]), None)
    if asked is None or asked.history is None or played.ending.output is None:
        return None
    for position, part in enumerate((asked.newest or {}).get("parts") or []):
        if part.get("part_kind") in ("retry-feedback", "retry-prompt") and not part.get("tool_name"):
            path = f"messages[{asked.history.length - 1}].parts[{position}].content"
            return Divergence(step=asked.step, path=path, recorded=part.get("content"), replayed=None)
    return None


def _last_seen(seen: Observations) -> int:
    return max([0, *(request.step or 0 for request in seen.requests), *(call.step for call in seen.calls)])


def _has_answer(step: Step) -> bool:
    return step.error is None or not isinstance(step.call, ToolCall) or step.call.result is not None


def _source_facts(plan: ReplayPlan, observations: Observations) -> JsonObject:
    """What was answered from the recording, and what was only read."""
    played = {step.index for step in played_steps(plan.run)}
    played_back = [step.name for step in plan.run.steps if step.index not in played]
    return {
        "sources": sources_of(observations),
        "played_back": played_back,
        "tools_are_recorded": plan.tools_are_recorded,
        "output_function": plan.run.agent.output_function,
    }


def sources_of(seen: Observations) -> JsonObject:
    """How many answers came from where. Behind the end of the recording a request has none."""
    answered = [request.source for request in seen.requests if request.step]
    return dict(Counter([*answered, *(call.source for call in seen.calls)]))
