"""A replay that ran on a person's own machine: what was observed there beside what was recorded.

The machine sends a run, and nothing of what it says about itself is taken over: verdict, first difference, proof and
the source of each step come from comparing the two runs here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sessions_app.core.judge.last_calls import waiting
from sessions_app.core.judge.verdict import Verdict, judge
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.replay.agreement import agreeing
from sessions_app.core.replay.asked_model import asked_in
from sessions_app.core.replay.ending import Ending, Played, cannot_begin, conclude
from sessions_app.core.replay.isolation import OWN_MACHINE
from sessions_app.core.replay.observed import Observations, ObservedCall, ObservedRequest, Result
from sessions_app.core.replay.observed_comparison import ObservedComparison
from sessions_app.core.replay.observed_pairs import Pair, Pairs, Tools, pair_steps
from sessions_app.core.replay.observed_produce import observed_run
from sessions_app.core.replay.observed_stops import is_stopped
from sessions_app.core.run import ModelCall, Run, ToolCall


def judge_observed(recorded: Run, observed: Run, *, tools: Tools, run_id: str) -> tuple[Result, Run | None]:
    """What the replay proved, and the run that it produced, under this id; none of a recording that cannot be
    replayed."""
    judged = judge(recorded)
    if judged.verdict == "cold":
        return replace(cannot_begin(judged), facts={"isolation": OWN_MACHINE}), None
    pairs = pair_steps(recorded, observed)
    seen = ObservedComparison(pairs, tools=tools)
    seen.compare()
    made = observed_run(pairs, seen, tools=tools, run_id=run_id)
    beside = _without_states(recorded) if seen.states is not None else recorded
    result = agreeing(beside, _concluded(judged, pairs, seen, tools), made)
    return replace(result, facts={**result.facts, **_facts(pairs, seen, made, tools)}), made


def _without_states(run: Run) -> Run:
    """Those that were observed have been compared."""
    return replace(run, initial_state=None, steps=tuple(replace(step, state=None) for step in run.steps))


def _concluded(judged: Verdict, pairs: Pairs, seen: ObservedComparison, tools: Tools) -> Result:
    played = Played(
        plan=pairs.plan,
        limit=judged.limit_of_code(runs_tools=tools == "run"),
        observations=_observations(pairs, seen, tools),
        ending=_ending(pairs, seen),
        divergence=seen.divergence,
        unused=pairs.unused,
        left_over=pairs.left_over,
        not_captured=frozenset(seen.tally.not_captured or ()),
        state=None if seen.states is None else seen.states.part(is_whole=seen.is_same and not pairs.unused),
    )
    return conclude(played, {})


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
    )


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
        asked=asked_in(call),
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
    )


def _facts(pairs: Pairs, seen: ObservedComparison, made: Run, tools: Tools) -> JsonObject:
    given = [step.source for step in made.steps if step.kind in ("model", "tool")]
    ran = [pair.observed.name for pair in pairs.steps if seen.sources[pair.observed.index] == "own_code"]
    return {
        "isolation": OWN_MACHINE,
        "commit": pairs.observed.code.commit,
        "tools": tools,
        "own_code": seen.acts,
        "fields_compared": seen.tally.compared,
        "volatile_fields": seen.tally.volatile,
        "not_captured": sorted(seen.tally.not_captured or ()),
        "sources": dict(Counter(given)),
        "live_tools": dict(Counter(ran)) if tools == "run" else {},
    }
