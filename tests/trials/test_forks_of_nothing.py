"""Forks in which nothing is changed go the way of the replay, and say no more than it does.

`TRIAL_SIZE=full` takes every way to start a run, and forks it at each of its steps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from sessions_app.core.formats.native import encode_native
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.proof import PARTS, read_proof
from sessions_app.core.run import ModelCall, Run, Step, ToolCall, is_answered_by_tool, main_steps
from tests.agents.forking import forked
from tests.recorder import playing
from tests.recorder.replaying import replayed
from tests.trials.bench import only_run
from tests.trials.recorded_runs import RecordedRun, all_runs

FULL = os.environ.get("TRIAL_SIZE") == "full"
WAYS = tuple(playing.WAYS) if FULL else ("run", "run_stream")
UNHEARD: JsonObject = {"kind": "clock", "value": 0}
Fork = tuple[int, JsonObject]


@pytest.fixture(scope="module")
def runs() -> list[RecordedRun]:
    return all_runs(WAYS)


def test_a_fork_that_changes_nothing_is_the_replay_again(runs: list[RecordedRun]):
    tried, faults = 0, []
    for name, run, whole in _reproduced(runs):
        for at, change in _forks(run):
            tried += 1
            said = _faults(run, whole, *forked(run, at, change, expect={"ends_within": 999})[:1])
            faults += [f"{name} at {at}, {change['kind']}: {each}" for each in said]
    assert not faults, "\n".join(faults[:100])
    assert tried >= 500


def _reproduced(runs: list[RecordedRun]) -> Iterator[tuple[str, Run, Result]]:
    for each in runs:
        run = only_run(each.content)
        result, _ = replayed(encode_native(run))
        if result.verdict == "reproduced":
            yield each.name, run, result


def _forks(run: Run) -> Iterator[Fork]:
    steps = [step for step in main_steps(run) if step.kind in ("model", "tool") and not _counts_anew(run, step)]
    chosen = steps if FULL else [*steps[:2], *steps[2:][-2:]]
    for step in chosen:
        if not _failed(step):  # a fork that begins there is to get past it
            yield step.index, UNHEARD
        if isinstance(step.call, ToolCall) and _has_answered(step.call):
            yield step.index, {"kind": "tool_result", "step": step.index, "value": step.call.result.value}


def _failed(step: Step) -> bool:
    return isinstance(step.call, ModelCall) and step.call.response is None


def _has_answered(call: ToolCall) -> bool:
    is_said = call.result is not None and (call.result.is_json or call.result.is_text)
    return is_said and is_answered_by_tool(call) and call.outcome in (None, "success")


def _counts_anew(run: Run, step: Step) -> bool:
    """Attempts before the fork's step are not counted on: the framework says another number, or tries once more."""
    return any(_is_retried(each) for each in run.steps[: step.index])


def _is_retried(step: Step) -> bool:
    call = step.call
    newest = call.history.message.value if isinstance(call, ModelCall) and call.history else {}
    told = any(part.get("part_kind") == "retry-feedback" for part in newest.get("parts") or [])
    return told or (isinstance(call, ToolCall) and call.outcome == "retried")


def _faults(run: Run, whole: Result, result: Result) -> Iterator[str]:
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
