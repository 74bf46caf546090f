"""The session file lists the calls that its messages hold once more: whether it lists others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from sessions_app.core.formats.tool_list import NAMES
from sessions_app.core.judge.reading import seen_messages, step_name, value_of
from sessions_app.core.judge.reasons import Reason, reason_at, reason_at_end
from sessions_app.core.payload import JsonValue, Payload, compact_json
from sessions_app.core.run import SESSION_FILE, Run, ToolCall

_Key = tuple[str, bytes]


def listed_calls_contradict(run: Run) -> Iterator[Reason]:
    listed = run.extra.get("tool_calls")
    if run.source_format != SESSION_FILE or not isinstance(listed, list) or not run.tool_calls:
        return
    said = _of_this_turn(run, [_key(_call(row)) for row in listed if isinstance(row, dict)])
    made = [(step, call) for step, call in run.tool_calls if not call.is_output or len(said) == len(run.tool_calls)]
    count = f"The list of tool calls holds {len(said)} calls, the messages {len(made)}."
    for pair, key in zip_longest(made, said):
        if pair is None:
            yield reason_at_end(run, "calls_contradicted", count)
            return
        if key != _key(pair[1]):
            other = f"The list of tool calls holds another call than {step_name(pair[0])}."
            yield reason_at(run, "calls_contradicted", count if key is None else other, pair[0])
            return


def _of_this_turn(run: Run, said: list[_Key]) -> list[_Key]:
    """A run that began with the messages of earlier turns may list the calls of those as well, in front."""
    parts = (part for seen in seen_messages(run) if seen.step == 0 for part in seen.parts_of("tool-call"))
    calls = (ToolCall(tool_name=str(part.get("tool_name")), arguments=Payload.of(part.get("args"))) for part in parts)
    earlier = list(map(_key, calls))
    return said[len(earlier) :] if said[: len(earlier)] == earlier else said


def _call(row: dict[str, JsonValue]) -> ToolCall:
    name = next((row[name] for name in NAMES if name in row), None)
    arguments = next((Payload.of(row[name]) for name in ("args", "arguments") if name in row), None)
    return ToolCall(tool_name=str(name), arguments=arguments)


def _key(call: ToolCall) -> _Key:
    """With the keys in their order: the model wrote another text otherwise."""
    return call.tool_name, compact_json(value_of(call.arguments) or {})
