"""What a replay that is over has proven, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from sessions_app.core.compare.facts import is_spelled_as_text
from sessions_app.core.compare.volatile import OUTPUT_TEXT
from sessions_app.core.judge.model_http import redacted_otherwise
from sessions_app.core.judge.reading import count, join_words, main_models, step_name
from sessions_app.core.kept_turns import kept_turns
from sessions_app.core.replay.awaited import are_told_in_saved_order
from sessions_app.core.replay.model_part import model_part, untold_fields
from sessions_app.core.replay.other_outcomes import other_outcome
from sessions_app.core.replay.plan import ReplayPlan, played_steps, repeated_requests
from sessions_app.core.replay.played import Played, Trouble
from sessions_app.core.replay.proof import (
    GIVEN_TURNS,
    INNER_REQUESTS,
    PROVEN,
    TAKEN,
    Part,
    PartName,
    Proof,
    differing,
    differs_at,
    not_comparable,
    proven,
    up_to,
)
from sessions_app.core.replay.ran_with import SAME, arguments_part
from sessions_app.core.replay.rewriting import Rewriting, has_prompt_of_code, in_words, made_otherwise, unrecorded_words
from sessions_app.core.replay.told_twice import (
    arguments_told_otherwise,
    conversation_told_otherwise,
    error_told_otherwise,
    instructions_told_otherwise,
    messages_told_otherwise,
    outcome_told_otherwise,
    past_told_otherwise,
    prompt_made_of_input,
    results_told_otherwise,
    settings_told_otherwise,
    span_told_otherwise,
    state_told_otherwise,
    tools_told_otherwise,
    unknown_roles,
)
from sessions_app.core.run import ErrorInfo, Run, Step
from sessions_app.core.state import lack_of_states
from sessions_app.core.unplayed import unplayed


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


def proof_of(played: Played, found: Trouble | None) -> Proof:
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
        prompt_made_of_input,
        redacted_otherwise,
        span_told_otherwise,
    )
    kept = _not_made_before(played) if _has_kept_requests(played) else None
    if kept is not None and not played.observations.requests:
        return not_comparable(kept)
    missing = _unrecorded_requests(played.plan)
    found = _comparable(played, "messages", missing or _NO_REQUESTS)
    ours = kept, kept_turns(run), _not_made_again(run), *played.taken_words, _of_checks(played)
    unsaid = (words for path, words in _UNTOLD_IN_REQUESTS.items() if path in played.not_captured)
    reasons = (missing, *unsaid, unrecorded_words(run), *ours, _behind_tools(hooks), _saved_order(played.plan))
    told = [words for tell in tellings if (words := tell(run)) is not None]
    untold = [*(each for each in reasons if each is not None), *told]
    if played.rewritten:
        return not_comparable("; ".join([*_rewriting(played), *untold]))
    if found == PROVEN and untold:
        agree = "the requests agree" if missing is None else "the other requests agree"
        return not_comparable("; ".join([agree, *untold]))
    around = state_told_otherwise(run)
    if found != PROVEN:
        return not_comparable("; ".join(each for each in (found.reason, *told, around) if each is not None))
    turns = GIVEN_TURNS if run.prior is not None else None
    made = "code that did not run made the prompt of the input" if has_prompt_of_code(run) else None
    inner = INNER_REQUESTS if len(main_models(run)) < len(run.model_calls) else None
    return proven(turns, made, around, inner)


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
