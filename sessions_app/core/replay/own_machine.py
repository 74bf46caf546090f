"""A replay that was observed by the recorder, on a person's own machine or in the sealed process: what was observed
there beside what was recorded.

A run is what comes from there, and of what it says about itself nothing is taken over but what makes it prove less:
verdict, first difference, proof and the source of each step come from judging and comparing the two runs here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.last_calls import waiting
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.judge.verdict import judge_code
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.ran_with import is_told, said_of
from sessions_app.core.replay.agreement import agreeing
from sessions_app.core.replay.asked_model import asked_in
from sessions_app.core.replay.ending import cannot_begin, conclude_code
from sessions_app.core.replay.isolation import OWN_MACHINE
from sessions_app.core.replay.marks import without_new_marks
from sessions_app.core.replay.observed import Observations, ObservedCall, ObservedRequest, Result
from sessions_app.core.replay.observed_comparison import ObservedComparison
from sessions_app.core.replay.observed_contradictions import first_contradiction
from sessions_app.core.replay.observed_pairs import Pair, Pairs, Tools, pair_steps
from sessions_app.core.replay.observed_produce import observed_run
from sessions_app.core.replay.observed_stops import is_stopped
from sessions_app.core.replay.plan import ReplayPlan
from sessions_app.core.replay.played import Ending, Played
from sessions_app.core.replay.raw_answers import not_raw, raw_response
from sessions_app.core.run import ModelCall, Run, ToolCall


def judge_observed(
    recorded: Run, observed: Run, *, tools: Tools, run_id: str, is_sealed: bool = False
) -> tuple[Result, Run | None]:
    """What the replay proved, and the run that it produced, under this id; none of a recording that cannot be
    replayed. `is_sealed` says that it ran in the sealed process, which has a fence of its own to tell of."""
    judged = judge_code(recorded, runs_tools=tools == "run")
    if judged.verdict == "cold":
        return replace(cannot_begin(judged), facts={} if is_sealed else {"isolation": OWN_MACHINE}), None
    pairs = pair_steps(recorded, without_new_marks(recorded, observed))
    seen = ObservedComparison(pairs, tools=tools)
    seen.compare()
    made = observed_run(pairs, seen, tools=tools, run_id=run_id)
    beside = _without_states(recorded) if seen.states is not None else recorded
    concluded = _concluded(judged.reasons, pairs, seen, tools)
    if concluded.verdict == "reproduced" and (contradiction := first_contradiction(pairs, observed, tools)):
        concluded = _concluded((contradiction,), pairs, seen, tools)
    result = agreeing(beside, concluded, made)
    own_machine = {} if is_sealed else _own_machine(pairs, seen, tools)
    return replace(result, facts={**result.facts, **_facts(seen, made, tools), **own_machine}), made


def judge_sealed(recorded: Run, observed: Run, told: JsonObject, *, tools: Tools, run_id: str) -> JsonObject:
    """The result of the sealed process, which `told` what it saw, with the verdict on the observed run and the record
    of the produced one."""
    found, made = judge_observed(recorded, observed, tools=tools, run_id=run_id, is_sealed=True)
    told = {**told, "record": None if made is None else encode_native(made).decode()}
    if told["stopped"]:
        return {**told, "verdict": "paused", "facts": {**told["facts"], "sources": found.facts["sources"]}}
    return {
        **told,
        "verdict": found.verdict,
        "divergence": asdict(found.divergence) if found.divergence else None,
        "facts": {**found.facts, **told["facts"]},
        "error": found.error,
    }


def _without_states(run: Run) -> Run:
    """Those that were observed have been compared."""
    return replace(run, initial_state=None, steps=tuple(replace(step, state=None) for step in run.steps))


def _concluded(limits: Sequence[Reason], pairs: Pairs, seen: ObservedComparison, tools: Tools) -> Result:
    played = Played(
        plan=pairs.plan,
        limit=None,
        observations=_observations(pairs, seen, tools),
        ending=_ending(pairs, seen),
        divergence=seen.divergence,
        unused=pairs.unused,
        left_over=pairs.left_over,
        not_captured=frozenset(seen.tally.not_captured or ()),
        has_taken_feedback=tools == "frozen" and _has_refused_text(pairs.plan),
        state=None if seen.states is None else seen.states.part(is_whole=seen.is_same and not pairs.unused),
    )
    return conclude_code(played, limits, {}, doubtful=_doubtful(pairs))


def _doubtful(pairs: Pairs) -> Reason | None:
    """A hook changed a recorded answer, and nobody knows whether one had before."""
    changed = (pair.recorded for pair in pairs.steps if pair.recorded and raw_response(pair.observed) is not None)
    first = None if is_told(pairs.recorded) else next(changed, None)
    return None if first is None else not_raw(pairs.recorded, first.index)


def _has_refused_text(plan: ReplayPlan) -> bool:
    """Whether a function that makes the output refused a text: what it said is given again where it does not run."""
    parts = (part for answer in plan.answers for part in (answer.newest or {}).get("parts") or [])
    has_function = plan.run.agent.output_function is not None
    return has_function and any(part.get("part_kind") == "retry-feedback" for part in parts)


def _ending(pairs: Pairs, seen: ObservedComparison) -> Ending:
    if is_stopped(pairs):
        return Ending(ran_past=seen.ran_past, miss=seen.miss, is_cut_short=True)
    observed = pairs.observed
    open_calls = _open_calls(observed)
    return Ending(
        output=observed.output,
        error=observed.error,
        open_calls=open_calls if open_calls and observed.output is None and observed.error is None else None,
        ran_past=seen.ran_past,
        miss=seen.miss,
    )


def _open_calls(observed: Run) -> dict[str, str | None]:
    return {call.call_id: call.outcome for _, call in waiting(observed) if call.call_id}


def _observations(pairs: Pairs, seen: ObservedComparison, tools: Tools) -> Observations:
    observed, is_cut_short = pairs.observed, is_stopped(pairs)
    models = [pair for pair in pairs.steps if isinstance(pair.observed.call, ModelCall)]
    calls = [pair for pair in pairs.steps if isinstance(pair.observed.call, ToolCall)]
    return Observations(
        requests=tuple(_request(pair, seen) for pair in models),
        calls=tuple(_call(pair, seen) for pair in calls),
        final=observed.final,
        output=None if is_cut_short else observed.output,
        error=None if is_cut_short else observed.error,
        open_calls=None if is_cut_short else _open_calls(observed) or None,
        has_run_tools=tools == "run",
        hooks_not_run=_hooks_not_run(observed),
        hears_arguments=is_told(observed),
    )


def _hooks_not_run(observed: Run) -> tuple[str, ...]:
    """What a machine says of itself to prove less is taken over."""
    said = observed.extra.get("hooks_not_run")
    return tuple(name for name in said if isinstance(name, str)) if isinstance(said, list) else ()


def _request(pair: Pair, seen: ObservedComparison) -> ObservedRequest:
    call = pair.observed.call
    assert isinstance(call, ModelCall)
    return ObservedRequest(
        step=pair.planned.step if pair.planned else None,
        history=call.history,
        parameters=call.parameters or Payload.of_json(None),
        response=call.response,
        source=seen.sources[pair.observed.index],
        error=pair.observed.error,
        asked=asked_in(pair.observed, call),
    )


def _call(pair: Pair, seen: ObservedComparison) -> ObservedCall:
    call = pair.observed.call
    assert isinstance(call, ToolCall)
    return ObservedCall(
        step=pair.recorded.index if pair.recorded else 0,
        call_id=call.call_id,
        tool_name=call.tool_name,
        arguments=call.arguments or Payload.of_json({}),
        source=seen.sources[pair.observed.index],
        given=said_of(pair.observed),
    )


def _own_machine(pairs: Pairs, seen: ObservedComparison, tools: Tools) -> JsonObject:
    """Tools that ran there could reach the world."""
    ran = [pair.observed.name for pair in pairs.steps if seen.sources[pair.observed.index] == "own_code"]
    return {
        "isolation": OWN_MACHINE,
        "commit": pairs.observed.code.commit,
        "live_tools": dict(Counter(ran)) if tools == "run" else {},
    }


def _facts(seen: ObservedComparison, made: Run, tools: Tools) -> JsonObject:
    given = [step.source for step in made.steps if step.kind in ("model", "tool")]
    return {
        "tools": tools,
        "own_code": seen.acts,
        "fields_compared": seen.tally.compared,
        "volatile_fields": seen.tally.volatile,
        "not_captured": sorted(seen.tally.not_captured or ()),
        "sources": dict(Counter(given)),
    }
