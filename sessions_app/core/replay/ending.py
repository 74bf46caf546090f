"""From how the loop ended to what was proven, and so to the verdict of the replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sessions_app.core.compare.facts import is_spelled_as_text
from sessions_app.core.compare.runs import call_value
from sessions_app.core.compare.strict import same_json
from sessions_app.core.compare.volatile import OUTPUT_TEXT
from sessions_app.core.fork.stops import Stopped
from sessions_app.core.history import History
from sessions_app.core.judge.last_calls import waiting
from sessions_app.core.judge.model_http import redacted_otherwise
from sessions_app.core.judge.outcome import MESSAGE_FROM_CODE
from sessions_app.core.judge.reading import count, join_words, main_models, object_of, step_name
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.judge.unreadable import UNREADABLE
from sessions_app.core.judge.verdict import Verdict
from sessions_app.core.kept_turns import kept_turns
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.awaited import are_told_in_saved_order
from sessions_app.core.replay.call_places import place_without_step
from sessions_app.core.replay.fixture_book import FixtureMiss, is_same_call, recorded_arguments
from sessions_app.core.replay.frozen_tools import changed_by_frozen_tool
from sessions_app.core.replay.matching import Tally, first_mismatch
from sessions_app.core.replay.model_part import model_part, untold_fields
from sessions_app.core.replay.observed import Divergence, Observations, Result
from sessions_app.core.replay.outputs import same_output
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan, played_steps, repeated_requests
from sessions_app.core.replay.proof import (
    GIVEN_TURNS,
    INNER_REQUESTS,
    PROVEN,
    TAKEN,
    OutcomeKind,
    Part,
    PartName,
    Proof,
    differing,
    differs_at,
    not_comparable,
    part_of,
    proven,
    up_to,
)
from sessions_app.core.replay.ran_with import SAME, arguments_part
from sessions_app.core.replay.refusal_words import refusal_in_words
from sessions_app.core.replay.rewriting import Rewriting, has_prompt_of_code, in_words, made_otherwise, unrecorded_words
from sessions_app.core.replay.told_twice import (
    arguments_told_otherwise,
    conversation_told_otherwise,
    error_told_otherwise,
    input_told_otherwise,
    instructions_told_otherwise,
    messages_told_otherwise,
    outcome_told_otherwise,
    past_told_otherwise,
    results_told_otherwise,
    settings_told_otherwise,
    state_told_otherwise,
    tools_told_otherwise,
    unknown_roles,
)
from sessions_app.core.run import ErrorInfo, Fixture, Run, Step, ToolCall
from sessions_app.core.state import lack_of_states
from sessions_app.core.unplayed import unplayed


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """Why the loop stopped."""

    output: Payload | None = None
    error: ErrorInfo | None = None
    open_calls: Mapping[str, str | None] | None = None
    """What the calls wait for (`run.WAITING`), by id; None when the loop did not end with any."""
    ran_past: int | None = None
    """Number of requests that had been answered when one more was made."""
    miss: FixtureMiss | None = None
    stopped: Stopped | None = None
    """It waits at a stop."""
    is_cut_short: bool = False
    """No recorded answer fitted what was asked for, so the replay was ended there."""

    @property
    def is_regular(self) -> bool:
        """Whether the loop came to an end of its own, good or bad."""
        is_stopped = self.stopped is not None or self.is_cut_short
        return self.ran_past is None and self.miss is None and not is_stopped

    @property
    def kind(self) -> OutcomeKind | None:
        if not self.is_regular:
            return None
        if self.error is not None:
            return "error"
        return "open calls" if self.open_calls is not None else "answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """A replay that is over, as the loop left it."""

    plan: ReplayPlan
    observations: Observations
    ending: Ending
    divergence: Divergence | None
    """Of a request or a tool call."""
    not_captured: frozenset[str]
    """Paths of which the recording holds nothing, as the comparison tallied them."""
    limit: Reason | None = None
    """What ends a replay of this recording before its end, or keeps its outcome from being proven: what the judge said
    when it came in."""
    unused: tuple[PlannedAnswer, ...] = ()
    left_over: Sequence[Fixture] = ()
    kept: int = 0
    """Steps up to this index were not made again: a fork goes on from there."""
    rewritten: Mapping[int, Rewriting] = field(default_factory=dict)
    """Requests whose past was taken from the recording, for code had rewritten it that does not run; by their step."""
    taken_parameters: tuple[str, ...] = ()
    """What of them a rebuilt agent has from the recording."""
    taken_words: tuple[str, ...] = ()
    """What stands nowhere but in the requests, where the rebuilt agent takes it from there."""
    has_taken_feedback: bool = False
    """What a check of the output told the model was taken from the recording."""
    state: Part | None = None
    """What was proven of the state, where recorded and observed states were compared apart from the steps."""

    @property
    def rest(self) -> list[int]:
        """Steps whose recorded answers nobody asked for."""
        return sorted([answer.step for answer in self.unused] + [fixture.step for fixture in self.left_over])

    @property
    def steps(self) -> int:
        return len(self.plan.run.steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """What went another way first."""

    verdict: str
    divergence: Divergence
    facts: JsonObject

    @property
    def step(self) -> int | None:
        return self.divergence.step

    @property
    def is_of_outcome(self) -> bool:
        """Then all steps were equal."""
        return part_of(self.divergence.path) == "outcome" and "left_over" not in self.facts


def conclude(played: Played, facts: JsonObject) -> Result:
    """The first thing that went another way decides the verdict; where nothing did, the run is reproduced."""
    found = _first_trouble(played)
    proof = _proof(played, found)
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
    """The same of the team's own code. A message that code put there, be it a tool or not, its code of today may have
    put there again: where the loop came past that place, it is no limit. What is `doubtful` is one where anything
    differs, as is what a tool that did not run may have changed."""
    if not played.observations.has_run_tools:
        doubtful = doubtful or changed_by_frozen_tool(played.plan.run, played.divergence)
    if doubtful is not None and _trouble(played) is not None:
        limits = [doubtful, *limits]
    past = [limit for limit in limits if limit.code == MESSAGE_FROM_CODE and _came_past(played, limit)]
    left = (limit for limit in limits if limit not in past)
    return conclude(replace(played, limit=next(left, None)), facts)


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
        return found.verdict == "diverged" and found.step == limit.step
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
        return _ran_past(plan, ending.ran_past)
    if ending.miss is not None:
        return _decided_otherwise(played, ending.miss) or _missed(plan, ending.miss, behind=_answered_last(played))
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
    last = _answered_last(played)
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


def _ran_past(plan: ReplayPlan, cursor: int) -> Trouble:
    """The step at which an answer was wanted that is not there."""
    is_recorded = cursor < len(plan.answers)
    step = plan.answers[cursor].step if is_recorded else len(plan.run.steps) + 1
    asked = Divergence(step=step, path="response", recorded=None, replayed="another model request")
    return Trouble(verdict="ran_past_recording", divergence=asked, facts={})


def _answered_last(played: Played) -> PlannedAnswer | None:
    """The recorded answer that the loop was given last."""
    steps = {request.step for request in played.observations.requests if request.response is not None}
    return next((answer for answer in reversed(played.plan.answers) if answer.step in steps), None)


def _missed(plan: ReplayPlan, miss: FixtureMiss, *, behind: PlannedAnswer | None) -> Trouble:
    step = _step_of_call(plan, miss.call_id, behind=behind)
    path, recorded, replayed = _denied(plan, step, miss) or missed_field(miss)
    found = Divergence(step=step, path=path, recorded=recorded, replayed=replayed)
    return Trouble(
        verdict="fixture_missing", divergence=found, facts=missed_facts(miss) | _not_played(plan, step, miss)
    )


def _decided_otherwise(played: Played, miss: FixtureMiss) -> Trouble | None:
    """A call that was denied then is made, and one before it that was made then is not: whoever decides on the calls of
    an answer decided otherwise of that one first."""
    behind = _answered_last(played)
    step = _step_of_call(played.plan, miss.call_id, behind=behind)
    if behind is None or _denied(played.plan, step, miss) is None:
        return None
    before = (each for each in played.left_over if each.parent == behind.step and each.step < step)
    first = next(before, None)
    if first is None:
        return None
    found = Divergence(step=first.step, path="outcome", recorded=first.call.outcome, replayed="not called")
    return Trouble(verdict="diverged", divergence=found, facts={})


def _not_played(plan: ReplayPlan, step: int, miss: FixtureMiss) -> JsonObject:
    """Agents that ran in this call then, and are not played inside of this replay: nothing is known to differ."""
    then: list[JsonValue] = [each.name for each in plan.run.steps if (each.kind, each.parent) == ("agent", step)]
    return {"agents_not_played": then} if then and miss.is_of_agent else {}


def missed_facts(miss: FixtureMiss) -> JsonObject:
    """What was asked for that has no answer, and the recorded calls that come nearest."""
    nearest = [{"step": f.step, "arguments": recorded_arguments(f.call.arguments)} for f in miss.nearest]
    asked: JsonObject = {"tool": miss.tool_name, "arguments": miss.arguments, "call_id": miss.call_id}
    if miss.request is not None:
        asked["http"] = miss.request.to_json()
    return {"asked_for": asked, "nearest": nearest}


_Field = tuple[str, JsonValue, JsonValue]


def _denied(plan: ReplayPlan, step: int, miss: FixtureMiss) -> _Field | None:
    """The call was made that the recording says was not allowed."""
    call = plan.run.steps[step - 1].call if step <= len(plan.run.steps) else None
    is_denied = isinstance(call, ToolCall) and call.call_id == miss.call_id and call.outcome == "denied"
    return ("outcome", "denied", None) if is_denied else None


def missed_field(miss: FixtureMiss) -> _Field:
    """In what the call differs from the nearest recorded one; its answer, where it differs in nothing."""
    if miss.request is not None:
        found = miss.request.difference
        return found.path, found.recorded, found.rebuilt
    if miss.is_of_agent:
        return "response", None, miss.tool_name
    if miss.is_recorded_call:
        return "result", None, miss.arguments
    if not miss.nearest:
        return "arguments", None, miss.arguments
    nearest = miss.nearest[0].call
    if nearest.tool_name != miss.tool_name:
        return "tool_name", nearest.tool_name, miss.tool_name
    if is_same_call(nearest, miss.arguments):
        return "result", None, miss.arguments
    return "arguments", recorded_arguments(nearest.arguments), miss.arguments


def _step_of_call(plan: ReplayPlan, call_id: str | None, *, behind: PlannedAnswer | None) -> int:
    """Where the call stands in the recording, `behind` the answer that asked for it; the place where it would stand,
    where it has no step. What a run was resumed with is called before it asks the model."""
    first = 0 if behind is None else behind.step
    calls = [(step, call) for step, call in plan.run.tool_calls if step.index > first]
    own = next((step.index for step, call in calls if call_id is not None and call.call_id == call_id), None)
    if own is not None:
        return own
    if behind is None:
        return min((answer.step for answer in plan.answers), default=1)
    is_asked = call_id is not None and call_id in behind.asked
    return place_without_step(plan.run, behind.step, behind.asked, call_id) if is_asked else behind.step + 1


# --- the outcome -------------------------------------------------------------------------------


def other_outcome(run: Run, ending: Ending) -> Divergence | None:
    """The loop came to another outcome, although every request was equal."""
    last = len(run.steps)
    if ending.error is not None or run.error is not None:
        return _other_error(run.error, ending.error, last)
    if run.output is None and (waiting(run) or ending.open_calls is not None):
        return _other_calls(run, ending.open_calls)
    if ending.output is not None and (run.output is None or same_output(run.output, ending.output)):
        return None
    recorded, replayed = _shown(run.output, ending.output)
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        found = first_mismatch(recorded, replayed, raw=recorded, path="output", tally=Tally())
        if found is not None:
            return Divergence(step=last, path=found.path, recorded=found.recorded, replayed=found.rebuilt)
    return Divergence(step=last, path="output", recorded=recorded, replayed=replayed)


def _shown(*outputs: Payload | None) -> list[JsonValue]:
    """As they are written, where nothing but the spelling of a number differs."""
    left, right = [None if each is None else each.parsed for each in outputs]
    is_spelling = left is not None and same_json(left, right)
    return [
        each.as_text() if each and is_spelling else value for each, value in zip(outputs, (left, right), strict=True)
    ]


def _other_error(recorded: ErrorInfo | None, replayed: ErrorInfo | None, last: int) -> Divergence | None:
    if recorded is None or replayed is None:
        return Divergence(
            step=last, path="error", recorded=recorded and recorded.value, replayed=replayed and replayed.value
        )
    for name in ("type", "message"):
        left, right = getattr(recorded, name), getattr(replayed, name)
        if left is not None and left != right:
            return Divergence(step=last, path=f"error.{name}", recorded=left, replayed=right)
    return None


def _ids_of(calls: list[tuple[Step, ToolCall]]) -> frozenset[str]:
    return frozenset(call.call_id for _, call in calls if call.call_id)


def _put_off(run: Run) -> frozenset[str]:
    """Calls that a tool itself put off: `run_stream` may end without handing them over."""
    is_stream = run.agent.entry_point == "run_stream"
    return _ids_of([pair for pair in waiting(run) if is_stream and pair[1].outcome == "deferred"])


def _other_calls(run: Run, open_calls: Mapping[str, str | None] | None) -> Divergence | None:
    """None where the same calls wait for the same. `open_calls` is None where the loop came to another end."""
    recorded, last = _ids_of(waiting(run)), len(run.steps)
    if open_calls is None:
        return Divergence(step=last, path="open_calls", recorded=sorted(recorded), replayed=None)
    recorded, replayed = recorded - _put_off(run), frozenset(open_calls) - _put_off(run)
    if recorded != replayed:
        return Divergence(step=last, path="open_calls", recorded=sorted(recorded), replayed=sorted(replayed))
    return next(_waiting_otherwise(run, open_calls), None)


def _waiting_otherwise(run: Run, open_calls: Mapping[str, str | None]) -> Iterator[Divergence]:
    """Calls that were said to wait for a person, and wait for a result from outside; or the other way round."""
    for step, call in waiting(run):
        now = open_calls.get(call.call_id or "")
        if None not in (call.outcome, now) and call.outcome != now:
            yield Divergence(step=step.index, path="open_calls", recorded=call.outcome, replayed=now)


# --- what was proven ---------------------------------------------------------------------------


def prove(played: Played) -> Proof:
    """What is known beside the recording of what was played, as far as nothing went another way."""
    parts: dict[PartName, Part] = {
        "requests": _requests(played),
        "parameters": _parameters(played),
        "model": _model(played),
        "tool_arguments": _tool_arguments(played),
        "state": _state(played),
        "outcome": _outcome(played),
    }
    same, run = len(_comparable_steps(played)), played.plan.run
    return Proof(same_steps=same, parts=parts, outcome_kind=played.ending.kind, not_played=unplayed(run))


def _proof(played: Played, found: Trouble | None) -> Proof:
    proof, steps = prove(played), _comparable_steps(played)
    went_on = found is not None and found.verdict == "ran_past_recording"
    if found is not None and proof.has_same_outcome is False:  # what else differs is what follows from the first
        proof = replace(proof, parts={**proof.parts, "outcome": differs_at(found.divergence)})
    if found is not None and not found.is_of_outcome and (went_on or (found.step or 0) <= played.steps):
        proof = up_to(proof, steps, found.step)
        proof = differing(proof, found.divergence) if found.verdict == "diverged" else proof
    return proof


def _comparable_steps(played: Played) -> list[Step]:
    """Up to the first request that was not captured, unless a later one holds its messages too."""
    steps = played_steps(played.plan.run)
    if "messages" not in played.not_captured:
        return steps
    unseen = (step.index for step, call in main_models(played.plan.run) if call.history is None)
    first = next(unseen, 0)
    return [step for step in steps if step.index < first]


def _model(played: Played) -> Part:
    part = model_part(played.observations.requests, played.not_captured)
    told = settings_told_otherwise(played.plan.run)
    return part if told is None else not_comparable("; ".join(each for each in (part.reason, told) if each is not None))


def _tool_arguments(played: Played) -> Part:
    told = arguments_told_otherwise(played.plan.run) if played.observations.calls else None
    found = arguments_part(played.plan.run, played.observations) if told is None else not_comparable(told)
    kept = any(step.index <= played.kept for step, _ in played.plan.run.tool_calls)
    return not_comparable(f"{SAME}; {_not_made_before(played)}") if found == PROVEN and kept else found


def _not_made_before(played: Played) -> str:
    return f"what lies before step {played.kept + 1} was not made again"


def _has_kept_requests(played: Played) -> bool:
    return any(answer.step <= played.kept for answer in played.plan.answers)


_UNTOLD_IN_REQUESTS = {
    "messages[].instructions": "instructions were not recorded",
    "messages[].parts[].tool_call_id": "not every message says which call it is about",
}


def _requests(played: Played) -> Part:
    run, hooks = played.plan.run, played.observations.hooks_not_run
    tellings = (
        results_told_otherwise,
        past_told_otherwise,
        unknown_roles,
        messages_told_otherwise,
        conversation_told_otherwise,
        instructions_told_otherwise,
        redacted_otherwise,
    )
    kept = _not_made_before(played) if _has_kept_requests(played) else None
    if kept is not None and not played.observations.requests:
        return not_comparable(kept)
    missing = _unrecorded_requests(played.plan)
    found = _comparable(played, "messages", missing or _NO_REQUESTS)
    ours = kept, kept_turns(run), _not_made_again(run), *played.taken_words, _of_checks(played)
    unsaid = (words for path, words in _UNTOLD_IN_REQUESTS.items() if path in played.not_captured)
    reasons = (missing, *unsaid, unrecorded_words(run), *ours, _behind_tools(hooks), _saved_order(played.plan))
    untold = [each for each in (*reasons, *(tell(run) for tell in tellings)) if each is not None]
    if played.rewritten:
        return not_comparable("; ".join([*_rewriting(played), *untold]))
    if found == PROVEN and untold:
        agree = "the requests agree" if missing is None else "the other requests agree"
        return not_comparable("; ".join([agree, *untold]))
    turns = GIVEN_TURNS if run.prior is not None else None
    made = "code that did not run made the prompt of the input" if has_prompt_of_code(run) else None
    inner = INNER_REQUESTS if len(main_models(run)) < len(run.model_calls) else None
    return (
        proven(turns, made, input_told_otherwise(run), state_told_otherwise(run), inner) if found == PROVEN else found
    )


def _rewriting(played: Played) -> Iterator[str]:
    yield _other_past(played) or in_words(played.rewritten)
    histories = {answer.step: answer.history for answer in played.plan.answers if answer.history is not None}
    otherwise = made_otherwise(played.rewritten, histories)
    if otherwise is not None:
        yield otherwise


def _other_past(played: Played) -> str | None:
    """Where the first request that differs has the answer before it, and nothing else, in other words: of spans and
    HTTP nobody knows whether code changed it."""
    if not played.plan.run.is_told_by_others:
        return None
    step, rewriting = next(iter(played.rewritten.items()))
    before, asked = next((pair for pair in pairwise(played.plan.answers) if pair[1].step == step), (None, None))
    if before is None or asked is None or asked.history is None or before.history is None:
        return None
    if rewriting != Rewriting(made=(before.history.length,), cut=1):
        return None
    return f"the request of step {step} gives the answer of step {before.step} differently from the step itself"


_NO_REQUESTS = "the requests to the model were not recorded"


def _unrecorded_requests(plan: ReplayPlan) -> str | None:
    """None where all of them were recorded."""
    calls = main_models(plan.run)
    empty = [step for step, call in calls if call.history is None]
    steps = [step_name(step) for step in empty if step.index not in plan.partial]
    later = len(empty) - len(steps)
    if not steps:
        return None
    if len(steps) == len(calls):
        return _NO_REQUESTS
    said = f"the request of {steps[0]} was" if len(steps) == 1 else f"{len(steps)} requests were"
    goes_on = "goes on" if later == 1 else "go on"
    behind = f", and {count(later, 'later request')} {goes_on} from there" if later else ""
    return f"{said} not recorded{behind}"


def _of_checks(played: Played) -> str | None:
    return "what output validation told the model was taken from the recording" if played.has_taken_feedback else None


def _behind_tools(hooks: Sequence[str]) -> str | None:
    """What they made of an answer then is in the recorded one."""
    verb = "was" if len(hooks) == 1 else "were"
    said = f"{join_words(list(hooks))} {verb} not run after the tools, which returned their recorded answers"
    return said if hooks else None


def _saved_order(plan: ReplayPlan) -> str | None:
    said = f"the order in which tool answers were sent to the model was {TAKEN}"
    return said if are_told_in_saved_order(plan.run, plan.fixtures) else None


def _not_made_again(run: Run) -> str | None:
    """A client made the request again, and no loop of a replay has one that fails."""
    attempts = len(repeated_requests(run))
    which = "one failed attempt was" if attempts == 1 else f"{attempts} failed attempts were"
    return f"{which} read from the recording and not repeated" if attempts else None


def _parameters(played: Played) -> Part:
    found = _comparable(played, "parameters", _untold_parameters(played.plan.run))
    untold = untold_fields(played.not_captured, "parameters.")
    told = tools_told_otherwise(played.plan.run)
    if found == PROVEN and told is not None:
        return not_comparable(told)
    if found == PROVEN and untold:
        return not_comparable(f"parameters that the recording does not show: {untold}")
    if found == PROVEN and played.taken_parameters:
        verb = "was" if len(played.taken_parameters) == 1 else "were"
        return not_comparable(f"the agent's tools agree; {join_words(list(played.taken_parameters))} {verb} {TAKEN}")
    return not_comparable(_not_made_before(played)) if found == PROVEN and _has_kept_requests(played) else found


def _untold_parameters(run: Run) -> str:
    has_tools = any(call.tools for _, call in run.model_calls)
    if has_tools:
        return "the definitions of tools were recorded; how they were offered and the output schema were not"
    return "tools and output schema were not recorded"


def _state(played: Played) -> Part:
    run = played.plan.run
    lack = lack_of_states(run)
    if lack is not None:
        return not_comparable(lack)
    if played.state is not None:
        return played.state
    if played.observations.states == "taken":
        return PROVEN
    carried = played.observations.states == "carried"
    words = "carried over from the recording, not run" if carried else "the agent does not define how to read its state"
    return not_comparable(words)


def _comparable(played: Played, path: str, reason: str) -> Part:
    return not_comparable(reason) if path in played.not_captured else PROVEN


def _outcome(played: Played) -> Part:
    if played.limit is not None and played.limit.code != "output_differs":
        return not_comparable(played.limit.message.removesuffix("."))
    if not played.ending.is_regular:
        return Part(state="not_proven", reason="the replay reached no outcome of its own")
    other = other_outcome(played.plan.run, played.ending)
    if other is not None:
        return differs_at(other)
    told = error_told_otherwise(played.plan.run)
    if told is not None:
        return not_comparable(told)
    run, now = played.plan.run, played.ending.output
    is_by_rule = run.output is not None and now is not None and is_spelled_as_text(run.output, now)
    by_rule = f"equal by the rule {OUTPUT_TEXT}" if is_by_rule else None
    return proven(_lacking(run.error), by_rule, outcome_told_otherwise(run))


def _lacking(error: ErrorInfo | None) -> str | None:
    """What of a recorded error there is nothing to hold the new one against."""
    if error is None or None not in (error.type, error.message):
        return None
    return f"the {'type' if error.type is None else 'message'} of the error was not recorded"


def _source_facts(plan: ReplayPlan, observations: Observations) -> JsonObject:
    """What was answered from the recording, and what was only read."""
    played = {step.index for step in played_steps(plan.run)}
    played_back = [step.name for step in plan.run.steps if step.index not in played]
    return {
        "sources": {"recorded": len(observations.calls) + _answered(plan, observations)},
        "played_back": played_back,
        "tools_are_recorded": plan.tools_are_recorded,
        "output_function": plan.run.agent.output_function,
    }


def _answered(plan: ReplayPlan, observations: Observations) -> int:
    return min(len(observations.requests), len(plan.answers))
