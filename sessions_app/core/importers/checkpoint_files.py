"""Saved checkpoints of a run, one or a list of them in the order of their steps.

    {"run_id", "step_id", "step_number", "timestamp", "messages": […], "tool_calls": […], "model_config": {…},
     "state": {…}, "agent_version"}

The newest checkpoint has all messages so far, and the calls of models and tools are read from them; a checkpoint whose
messages hold no answer of a model has its tool calls alone. The state of each checkpoint stands on the step that its
messages or calls end with. Messages may be those of Pydantic AI, of a session file, or of a provider's API.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from sessions_app.core.assembly.conversation import Conversations
from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.formats.conversation import Message, read_messages, run_from_messages
from sessions_app.core.formats.fields import Fields, as_array
from sessions_app.core.formats.native import foreign_extra
from sessions_app.core.formats.native_steps import read_error
from sessions_app.core.formats.pydantic_messages import check_messages
from sessions_app.core.formats.session_file import read_message
from sessions_app.core.formats.values import message_value
from sessions_app.core.history import nodes
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject, JsonValue, Payload, sha256_hex
from sessions_app.core.run import AgentInfo, ModelCall, OtherCall, Run, StateChange, Step, ToolCall
from sessions_app.core.spans.provider_messages import messages_of
from sessions_app.core.state import diff_state

SOURCE = "checkpoints"
_KEYS = {"messages", "state"}
_CALL_NAMES = ("tool_name", "name", "tool")
_CALL_ARGUMENTS = ("args", "tool_args", "arguments")
_CALL_RESULTS = ("result", "tool_result")
_MODEL_NAMES = ("model", "model_name", "name")
_T = TypeVar("_T")
_MAX_MESSAGES = 50_000
"""Of all checkpoints together: each repeats those before it."""


def matches(value: JsonValue) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(map(_is_checkpoint, items))


def _is_checkpoint(item: JsonValue) -> bool:
    if not isinstance(item, dict) or not item.keys() >= _KEYS or not isinstance(item["messages"], list):
        return False
    return isinstance(item.get("tool_calls"), list) or item.keys() == _KEYS or "step_number" in item


def parse_checkpoints(content: bytes, limits: Limits = Limits()) -> Run:
    is_list = content.lstrip()[:1] == b"["
    raw = as_array(content, "the document") if is_list else [content]
    checkpoints = [_Checkpoint(Fields(slice_, f"[{n}]" if is_list else ""), limits) for n, slice_ in enumerate(raw)]
    if sum(len(each.messages) for each in checkpoints) > _MAX_MESSAGES:
        raise RecordTooLarge(f"The checkpoints hold more than {_MAX_MESSAGES} messages together.")
    first, last = checkpoints[0], checkpoints[-1]
    strange = next((each for each in checkpoints if each.run_id != first.run_id), None)
    if strange is not None:
        raise strange.fields.error(
            "run_id", "is another run's: send the checkpoints of each run in a document of its own"
        )
    run_id = last.run_id or f"run-{sha256_hex(content)[:16]}"
    run = run_from_messages(last.messages, run_id=run_id, source_format=SOURCE)
    if not run.model_calls:
        run = replace(run, steps=())
    run = _with_states(run, checkpoints)
    return replace(
        _with_config(run, last.config),
        session_id=last.session_id or run_id,
        agent=AgentInfo(version=last.version),
        user_id=last.user_id,
        started_at=last.started_at or first.taken_at,
        extra={"checkpoints": [each.facts for each in checkpoints], **foreign_extra(last.fields.rest(), SOURCE)},
    )


class _Checkpoint:
    """One checkpoint as it was saved."""

    def __init__(self, fields: Fields, limits: Limits) -> None:
        self.fields = fields
        self.run_id = fields.identifier("run_id")
        self.session_id = fields.identifier("session_id")
        self.taken_at = fields.time("timestamp")
        self.started_at = fields.time("start_time")
        self.messages = _messages(fields, limits)
        self.calls = [_call(child) for child in fields.children("tool_calls") or []]
        self.config: JsonObject = fields.object("model_config") or {}
        self.state = fields.value("state")
        self.version = fields.name("agent_version")
        self.user_id = fields.name("user_id")
        self.step_id = fields.name("step_id")
        self.number = fields.integer("step_number")

    @property
    def name(self) -> str:
        return self.step_id or (f"step_{self.number}" if self.number is not None else "checkpoint")

    @property
    def facts(self) -> JsonObject:
        """What has no field in a run of its own."""
        said = {"step_id": self.step_id, "step_number": self.number, "model_config": self.config or None}
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """An entry of `tool_calls`, and what it was read from."""

    step: Step
    value: JsonObject


def _call(fields: Fields) -> _Call:
    name = _first(fields.name, _CALL_NAMES)
    arguments, result = _first(fields.written, _CALL_ARGUMENTS), _first(fields.written, _CALL_RESULTS)
    error = read_error(fields, "error")
    call = ToolCall(
        tool_name=name or fields.required(_CALL_NAMES[0], fields.name),
        call_id=fields.name("call_id"),
        arguments=None if arguments is None else message_value(arguments),
        result=None if result is None or (error and result == b"null") else message_value(result),
    )
    duration = _first(fields.number, ("duration_ms", "duration"))
    step = Step(index=1, name=call.tool_name, call=call, duration_ms=duration, error=error)
    return _Call(step=step, value={name: fields.value(name) for name in fields.names()})


def _first(read: Callable[[str], _T | None], names: tuple[str, ...]) -> _T | None:
    return next((found for name in names if (found := read(name)) is not None), None)


# --- messages ----------------------------------------------------------------------------------


def _messages(fields: Fields, limits: Limits) -> list[Message]:
    raw = fields.items("messages") or []
    first = Payload(content=raw[0]).value if raw else None
    if not isinstance(first, dict):
        return []
    if "parts" in first and "type" in first:
        return read_messages([read_message(child, None) for child in fields.children("messages") or []])
    if "parts" in first and "kind" in first:
        return check_messages(raw, fields.at("messages"), limits)
    return _of_provider(fields)


def _of_provider(fields: Fields) -> list[Message]:
    said = messages_of(fields.value("messages"))
    if said is None:
        words = "must be messages with role and content, or those of Pydantic AI with kind and parts"
        raise fields.error("messages", words)
    ends_with_answer = bool(said) and said[-1].role == "assistant"
    asked, answer = (said[:-1], said[-1]) if ends_with_answer else (said, None)
    converted = Conversations().take(asked, answer, apart=None, model=None)
    history = [node.message for node in nodes(converted.history)][::-1]
    return read_messages([*history, *([converted.response] if converted.response else [])])


# --- states ------------------------------------------------------------------------------------


def _with_states(run: Run, checkpoints: list[_Checkpoint]) -> Run:
    """Each checkpoint's state on the step that it was taken behind; a step of its own where there is none."""
    steps = list(run.steps)
    state: JsonValue = None
    for checkpoint, new_calls in zip(checkpoints, _new_calls(checkpoints), strict=True):
        change = StateChange(after=tuple(diff_state(state, checkpoint.state)))
        place = _steps_in(checkpoint, run) if run.steps else _append(steps, new_calls)
        if not place or steps[place - 1].state is not None:
            place = _append(steps, [Step(index=1, name=checkpoint.name, call=OtherCall())])
        said = {"checkpoint": checkpoint.name}
        before = steps[place - 1]
        steps[place - 1] = replace(
            before,
            state=change,
            started_at=before.started_at or checkpoint.taken_at,
            extra={**before.extra, **said},
        )
        state = checkpoint.state
    return replace(run, steps=_with_call_facts(tuple(steps), checkpoints))


def _append(steps: list[Step], more: list[Step]) -> int:
    """The number of the last of them; 0 where there is none."""
    for step in more:
        steps.append(replace(step, index=len(steps) + 1))
    return len(steps) if more else 0


def _steps_in(checkpoint: _Checkpoint, run: Run) -> int:
    """How many steps of the run the checkpoint's messages hold."""
    return min(len(run_from_messages(checkpoint.messages, run_id="-", source_format=SOURCE).steps), len(run.steps))


def _new_calls(checkpoints: list[_Checkpoint]) -> list[list[Step]]:
    """The calls of each checkpoint's own step. Lists that grow repeat what came before; lists of one length do not."""
    lists = [each.calls for each in checkpoints]
    values = [[call.value for call in calls] for calls in lists]
    grows = len(values[-1]) > len(values[0])
    repeats = grows and all(later[: len(before)] == before for before, later in pairwise(values))
    known = [0, *(len(calls) for calls in lists[:-1])] if repeats else [0] * len(lists)
    return [[call.step for call in calls[n:]] for calls, n in zip(lists, known, strict=True)]


def _with_call_facts(steps: tuple[Step, ...], checkpoints: list[_Checkpoint]) -> tuple[Step, ...]:
    """Durations and errors, which messages do not have, from the entries of the same tools in their order."""
    entries = [call for calls in _new_calls(checkpoints) for call in calls]
    filled = []
    for step in steps:
        entry = next((each for each in entries if each.name == step.name), None)
        if entry is None or not isinstance(step.call, ToolCall):
            filled.append(step)
            continue
        entries.remove(entry)
        duration = entry.duration_ms if step.duration_ms is None else step.duration_ms
        filled.append(replace(step, duration_ms=duration, error=step.error or entry.error))
    return tuple(filled)


def _with_config(run: Run, config: JsonObject) -> Run:
    """The model and its settings, on the run and on each call of a model."""
    model = next((config[name] for name in _MODEL_NAMES if isinstance(config.get(name), str)), None)
    settings = {name: value for name, value in config.items() if name not in _MODEL_NAMES}
    payload = Payload.of_json(settings) if settings else None
    steps = tuple(
        replace(step, call=replace(step.call, settings=payload, model=step.call.model or model))
        if isinstance(step.call, ModelCall)
        else step
        for step in run.steps
    )
    return replace(run, steps=steps, model=run.model or model)
