"""Many calls, and calls that were made again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Level, Rules
from sessions_app.core.judge.anomalies.cut_json import answer_texts, is_cut_json
from sessions_app.core.judge.anomalies.failures import failed_steps
from sessions_app.core.judge.reading import (
    argument_key,
    calls_made,
    ended_in_error,
    object_of,
)
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, ToolCall


def many_tool_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Of the run as a whole, so at no step. A mere note where each call was another one and none failed: there was much
    to do."""
    calls = calls_made(run)
    if len(calls) > rules.max_tool_calls:
        others = {(call.tool_name, argument_key(call)) for _, call in calls}
        is_plain = len(others) == len(calls) and not any(step in failed_steps(run) for step, _ in calls)
        message = f"High tool call count: {len(calls)}"
        yield Anomaly(code="many_tool_calls", message=message, level="info" if is_plain else "warning")


def duplicate_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    same: dict[tuple[str, bytes], list[tuple[int | None, ToolCall]]] = defaultdict(list)
    for step, call in calls_made(run):
        same[call.tool_name, argument_key(call)].append((step, call))
    again = [repeat for calls in same.values() if len(calls) > 1 for repeat in _repeats(run, calls)]
    yield from sorted(again, key=lambda repeat: repeat.steps[-1:])


def _repeats(run: Run, calls: list[tuple[int | None, ToolCall]]) -> Iterator[Anomaly]:
    """One for each call that was made before; a note where it had a reason: the first had failed, or what it reads has
    changed, as whoever asks how far something is asks until it is done."""
    at, others = calls[0][0], calls[1:]
    reads = _answers_changed(run, calls)
    for step, call in others:
        is_retry = at is not None and ended_in_error(run.steps[at - 1])
        steps = tuple(s for s in (at, step) if s is not None)
        level: Level = "info" if reads or is_retry else "warning"
        said = "Called again after it failed" if is_retry else "Duplicate call"
        yield Anomaly(code="duplicate_call", message=f"{said}: {call.tool_name}", steps=steps, level=level)


def _answers_changed(run: Run, calls: list[tuple[int | None, ToolCall]]) -> bool:
    """Of a call that changes nothing. One that gives a new id each time has made something each time."""
    results = [call.result for _, call in calls]
    if None in results or len({result.content for result in results if result}) == 1:
        return False
    steps = [run.steps[at - 1] for at, _ in calls if at is not None]
    if any(step.extra.get("tool_kind") == "write" for step in steps) or _makes_ids(calls):
        return False
    return not any(
        is_cut_json(text) for step, (_, call) in zip(steps, calls, strict=False) for text in answer_texts(step, call)
    )


_ID = re.compile(r"[A-Za-z]{1,12}[_-](?=\w*\d)\w+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _makes_ids(calls: list[tuple[int | None, ToolCall]]) -> bool:
    """Each answer has an id that the others do not have, under the same key; who asks for nothing in particular may be
    given the next of a queue."""
    asks = object_of(calls[0][1].arguments)
    ids = [set(_ids_in(object_of(call.result))) for _, call in calls]
    return bool(asks) and all(ids) and len(set().union(*ids)) == sum(map(len, ids))


def _ids_in(answer: JsonObject) -> Iterator[tuple[str, str]]:
    yield from ((key, item) for key, item in answer.items() if isinstance(item, str) and _ID.fullmatch(item))
