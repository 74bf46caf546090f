"""The last check of a replay: the steps that it produced are compared with the recorded ones as those of any two runs.

What the loop answers by itself, such as a refused call or an output, is asked for by nobody; here it is seen. So is a
call of the agent's own that one side alone has. What ran inside tools, and what is behind the end of a replay that
ended early, may stand in the recording alone.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.compare.runs import Divergence as Difference
from sessions_app.core.compare.runs import first_changed_step
from sessions_app.core.payload import JsonValue
from sessions_app.core.replay.observed import Divergence, Observations, Result, absent_side
from sessions_app.core.replay.plan import played_steps
from sessions_app.core.replay.produce import produced_run
from sessions_app.core.replay.proof import differing, read_proof, up_to
from sessions_app.core.run import Run


def produced(recorded: Run, result: Result, seen: Observations, *, run_id: str) -> tuple[Result, Run]:
    """The produced run, and the result with what only the two whole runs side by side show."""
    made = produced_run(recorded, seen, run_id=run_id)
    return agreeing(recorded, result, made), made


def agreeing(recorded: Run, result: Result, made: Run) -> Result:
    """The result with what only the two whole runs side by side show."""
    is_whole = result.verdict == "reproduced"
    if not is_whole and "limit" not in result.facts:
        return result
    found = first_changed_step(recorded, made, counts_alone=is_whole)
    if found is None or not _is_before_end(recorded, found, result.divergence):
        return result
    return _diverged(recorded, result, found)


def _is_before_end(recorded: Run, found: Difference, end: Divergence | None) -> bool:
    """Of a replay that ended with its recording, only what was said before that place: answers of the model, calls
    whose answers it was told, and the loop's own words to a call that carries the output."""
    step = found.left_step or found.right_step
    if end is None or step is None:
        return end is None
    if step.kind == "model":
        return _is_of_answer(found) and step.index < (end.step or 0)
    told = max((each.index for each, _ in recorded.model_calls), default=0)
    is_heard = step.index < told or any(each is step and call.is_output for each, call in recorded.tool_calls)
    return step.kind == "tool" and is_heard and step.index < (end.step or 0)


def _is_of_answer(found: Difference) -> bool:
    """What the model said, or a field that one of the answers does not have; the library spells its own counts anew."""
    is_absent = found.left is MISSING or found.right is MISSING
    return found.path.startswith("response.parts") or (is_absent and found.path.startswith("response."))


def _diverged(recorded: Run, result: Result, found: Difference) -> Result:
    step = found.left_step or found.right_step
    divergence = Divergence(
        step=step.index if step else len(recorded.steps),
        path=found.path,
        recorded=_or_none(found.left),
        replayed=_or_none(found.right),
    )
    proof = read_proof(result.facts["proof"])
    assert proof is not None
    if step is not None:
        proof = up_to(proof, played_steps(recorded), step.index)
    proof = differing(proof, divergence)
    facts = {**result.facts, "proof": proof.to_json(), **absent_side(found.left, found.right)}
    return replace(result, verdict="diverged", divergence=divergence, facts=facts)


def _or_none(value: JsonValue) -> JsonValue:
    return None if value is MISSING else value
