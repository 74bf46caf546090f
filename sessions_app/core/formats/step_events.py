"""The events of an agent that emits one for each step, as a list, as lines, or as `{"run_id": …, "events": […]}`.

    {"step_id", "input_state", "decision", "tool_name", "tool_args", "tool_result", "output_state", "timestamp"}

An event is a step: a call of its tool, or a decision where it names none. The states are the run's states, with what
changed between two steps. The answer in the last state is the run's output.
"""

from __future__ import annotations

from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.formats.fields import Fields, as_array
from sessions_app.core.formats.native import foreign_extra
from sessions_app.core.formats.values import message_value
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject, JsonValue, Payload, sha256_hex
from sessions_app.core.run import OtherCall, Run, StateChange, Step, ToolCall
from sessions_app.core.state import diff_state

SOURCE = "step-events"
_KEYS = {"step_id", "tool_name", "input_state", "output_state"}


def matches(value: JsonValue) -> bool:
    if isinstance(value, dict):
        value = value.get("events", [value])
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) and e.keys() >= _KEYS for e in value)


def parse_step_events(content: bytes, limits: Limits = Limits()) -> Run:
    run_id, extra, raw = _parts(content)
    if len(raw) > limits.max_steps:
        raise RecordTooLarge(f"There are {len(raw)} events; the limit is {limits.max_steps}.")
    events = [Fields(slice_, f"[{position}]") for position, slice_ in enumerate(raw)]
    states = [(event.value("input_state"), event.value("output_state")) for event in events]
    steps: list[Step] = []
    before = states[0][0]
    for event, (given, left) in zip(events, states, strict=True):
        change = StateChange(before=tuple(diff_state(before, given)), after=tuple(diff_state(given, left)))
        steps.append(_step(event, len(steps) + 1, change))
        before = left
    answer = before.get("answer") if isinstance(before, dict) else None
    return Run(
        run_id=run_id,
        session_id=run_id,
        status="ok" if isinstance(answer, str) else "cut_off",
        source_format=SOURCE,
        output=Payload.of_text(answer) if isinstance(answer, str) else None,
        started_at=steps[0].started_at,
        initial_state=None if states[0][0] is None else Payload.of_json(states[0][0]),
        steps=tuple(steps),
        extra=extra,
    )


def _parts(content: bytes) -> tuple[str, JsonObject, list[bytes]]:
    """The run's id, unknown fields beside the events, and the events."""
    made_id = f"run-{sha256_hex(content)[:16]}"
    if content.lstrip()[:1] == b"[":
        return made_id, {}, as_array(content, "the document")
    fields = Fields(content)
    events = fields.items("events")
    if events is None:
        return made_id, {}, [content]
    return fields.identifier("run_id") or made_id, foreign_extra(fields.rest(), SOURCE), events


def _step(event: Fields, index: int, change: StateChange) -> Step:
    tool_name, decision = event.name("tool_name") or None, event.value("decision")
    arguments, result = event.written("tool_args"), event.written("tool_result")
    call = (
        OtherCall()
        if tool_name is None
        else ToolCall(
            tool_name=tool_name,
            arguments=None if arguments is None else message_value(arguments),
            result=None if result is None else message_value(result),
        )
    )
    step_id = event.name("step_id")
    return Step(
        index=index,
        name=tool_name or step_id or "step",
        call=call,
        started_at=event.time("timestamp"),
        state=change,
        extra={"step_id": step_id, "decision": decision, **_rest(event)},
    )


def _rest(event: Fields) -> JsonObject:
    return {f"{SOURCE}.{name}": value for name, value in event.rest().items()}
