"""Forks that give again what was recorded go the way of the replay, say no more than it does, and were foretold; forks
with another answer stop, or end, where that was foretold.

`TRIAL_SIZE=full` takes every way to start a run, and forks it at each of its steps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from random import Random

import pytest

from sessions_app.core.fork.decisions import is_held_back
from sessions_app.core.fork.foretell import Foretold, foretell
from sessions_app.core.fork.order import read_order
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.reading import main_models
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.replay.fixture_book import recorded_arguments
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.plan import attempts
from sessions_app.core.replay.proof import PARTS, read_proof
from sessions_app.core.run import ModelCall, Run, Step, ToolCall, is_answered_by_tool, main_steps
from sessions_app.mapping.rows import step_rows
from sessions_app.mapping.stored import Collector
from tests.agents.forking import StepsOf, forked
from tests.recorder import playing
from tests.recorder.replaying import replayed
from tests.trials.bench import only_run
from tests.trials.recorded_runs import RecordedRun, all_runs

FULL = os.environ.get("TRIAL_SIZE") == "full"
WAYS = tuple(playing.WAYS) if FULL else ("run", "run_stream")
STEPS_OF_A_RUN = 1
UNHEARD: JsonObject = {"kind": "clock", "value": 0}
NOTHING = "This is what was recorded: nothing would change."
STOPS = re.compile(r"Stops at step (\d+): the model's answer is unknown\.")
Fork = tuple[int, JsonObject]


@pytest.fixture(scope="module")
def runs() -> list[RecordedRun]:
    return all_runs(WAYS)


def test_a_fork_that_gives_again_what_was_recorded_is_the_replay_again(runs: list[RecordedRun]):
    tried, faults = 0, []
    for each in runs:
        run = parse_native(encode_native(only_run(each.content)))
        whole, _ = replayed(encode_native(run))
        for at, change in _forks(run, each.name):
            tried += 1
            result, _ = forked(run, at, change, expect={"ends_within": 999})
            said = _faults(whole, result, _told(run, at, change))
            faults += [f"{each.name} at {at}, {change['kind']}: {fault}" for fault in said]
    assert not faults, "\n".join(faults[:100])
    assert tried >= 500


def test_a_fork_with_another_answer_goes_where_that_was_foretold(runs: list[RecordedRun]):
    tried, faults = 0, []
    for each in runs:
        run = parse_native(encode_native(only_run(each.content)))
        for at, change in _others(run, each.name):
            tried += 1
            result, _ = forked(run, at, change, expect={"ends_within": 999})
            told = _told(run, at, change)
            fault = None if told is None else _misses(told.words, result)
            faults += [] if fault is None else [f"{each.name} at {at}, {change}: {fault}"]
    assert not faults, "\n".join(faults[:100])
    assert tried >= 200


# --- what is given instead -----------------------------------------------------------------------


def _others(run: Run, name: str) -> Iterator[Fork]:
    steps = [step for step in main_steps(run) if _may_be_answered(run, step)]
    for step in steps if FULL else Random(name).sample(steps, min(STEPS_OF_A_RUN, len(steps))):
        if isinstance(step.call, ToolCall):
            yield step.index, {"kind": "tool_result", "step": step.index, "value": "Another answer."}
            yield step.index, {"kind": "tool_result", "step": step.index, "error": "Out of order."}
        else:
            yield step.index, {"kind": "model_answer", "step": step.index, "value": {"text": "Another answer."}}


def _may_be_answered(run: Run, step: Step) -> bool:
    """As a fork is checked before it is queued."""
    if step.index in attempts(run):
        return False
    asking = next((call for each, call in reversed(main_models(run)) if each.index < step.index), None)
    if not isinstance(step.call, ToolCall):
        return isinstance(step.call, ModelCall)
    return is_answered_by_tool(step.call) and not is_held_back(step.call, asking)


def _misses(words: str, result: Result) -> str | None:
    stopped = result.stopped["step"] if result.stopped else None
    steps = {int(each) for each in re.findall(r"step (\d+)", words)}
    is_open = " if " in words or "asked again" in words
    if words.startswith(("Stops once", "The recording can be replayed")):
        is_right = result.verdict != "reproduced"
    elif "tops at step" in words:
        is_right = stopped in steps or (stopped is None and "or stops" in words)
    else:
        is_right = stopped is None or is_open
    return None if is_right else f"{words} It stops at {stopped}: {result.verdict} {result.divergence}"


# --- what is given again -------------------------------------------------------------------------


def _forks(run: Run, name: str) -> Iterator[Fork]:
    steps = [step for step in main_steps(run) if step.kind in ("model", "tool")]
    chosen = steps if FULL else Random(name).sample(steps, min(STEPS_OF_A_RUN, len(steps)))
    for step in chosen:
        yield step.index, UNHEARD
        yield from ((step.index, change) for change in (*_asked_so(run, step), *_answered_so(step)))


def _asked_so(run: Run, step: Step) -> Iterator[JsonObject]:
    """The instructions and the model of the next request."""
    requests = (each for each in main_steps(run) if each.index >= step.index and each.kind == "model")
    asked = next(requests, None)
    if asked is None or not isinstance(asked.call, ModelCall):
        return
    instructions, model = StepsOf(run).instructions(asked.index), asked.call.model or run.model
    if instructions:
        yield {"kind": "instructions", "value": instructions}
    if model:
        yield {"kind": "model", "value": {"model": model}}


def _answered_so(step: Step) -> Iterator[JsonObject]:
    if isinstance(step.call, ToolCall) and _has_answered(step.call):
        yield {"kind": "tool_result", "step": step.index, "value": step.call.result.value}
    answer = _answer(step.call) if isinstance(step.call, ModelCall) else {}
    if answer:
        yield {"kind": "model_answer", "step": step.index, "value": answer}


def _has_answered(call: ToolCall) -> bool:
    is_said = call.result is not None and (call.result.is_json or call.result.is_text)
    return is_said and is_answered_by_tool(call) and call.outcome in (None, "success")


def _answer(call: ModelCall) -> JsonObject:
    """As people write it; nothing where it cannot be written so."""
    parts = (call.response.value.get("parts") if call.response else None) or []
    text = "".join(part.get("content") or "" for part in parts if part.get("part_kind") == "text")
    asked = [part for part in parts if part.get("part_kind") == "tool-call"]
    calls = [
        {"name": part.get("tool_name"), "arguments": recorded_arguments(Payload.of(part.get("args")))} for part in asked
    ]
    if any(not isinstance(each["arguments"], dict) for each in calls):
        return {}
    return {name: value for name, value in (("text", text), ("tool_calls", calls)) if value}


# --- faults --------------------------------------------------------------------------------------


def _told(run: Run, at: int, change: JsonObject) -> Foretold | None:
    order = read_order({"at_step": at, "changes": [change], "hypothesis": "a test", "expect": {"ends_within": 999}})
    return foretell(order, step_rows(run, Collector()), {step.index for step in main_steps(run)}, StepsOf(run))


def _faults(whole: Result, result: Result, told: Foretold | None) -> Iterator[str]:
    words = told.words if told else NOTHING
    stops, stopped = STOPS.fullmatch(words), result.stopped["step"] if result.stopped else None
    if stops is not None:
        if stopped != int(stops[1]):
            yield f"is said to stop at {stops[1]}, and stops at {stopped}: {result.verdict} {result.divergence}"
    elif words != NOTHING:
        yield f"is foretold: {words}"
    elif whole.verdict == "reproduced" and not (told is None and _begins_at_failure(result)):
        yield from _faults_of_nothing(whole, result)
    elif result.verdict in ("reproduced", "diverged") and whole.verdict != "reproduced":
        yield f"{result.verdict}, of which the replay says {whole.verdict}: {result.divergence}"


def _begins_at_failure(result: Result) -> bool:
    """A fork that begins at a request that failed is there to get past it; of a clock nothing is foretold."""
    stopped, started = result.stopped, result.facts["started_from"]
    return stopped is not None and (stopped["kind"], stopped["step"]) == ("model", started["step"])


def _faults_of_nothing(whole: Result, result: Result) -> Iterator[str]:
    if result.verdict != "reproduced":
        yield f"{result.verdict} {result.divergence} {result.error}"
        return
    if set(result.facts["sources"]) - {"recorded"}:
        yield f"sources {result.facts['sources']}"
    if result.facts["expectation"]["source"] not in ("no_difference", "code_not_run"):
        yield "is said to make a difference"
    yield from _claims_more(whole, result)


def _claims_more(whole: Result, result: Result) -> Iterator[str]:
    proof, known = read_proof(result.facts["proof"]), read_proof(whole.facts["proof"])
    assert proof is not None
    assert known is not None
    for part in PARTS:
        if proof.parts[part].state == "proven" != known.parts[part].state:
            yield f"{part} is proven, of which the replay says: {known.parts[part].reason}"
