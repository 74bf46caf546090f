"""Whether a loop came to the recorded outcome: the same answer, the same error, or the same open calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sessions_app.core.compare.strict import same_json
from sessions_app.core.judge.last_calls import waiting
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.replay.matching import Tally, first_mismatch
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.replay.outputs import same_output
from sessions_app.core.replay.played import Ending
from sessions_app.core.run import ErrorInfo, Run, Step, ToolCall


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
