"""Runs read from a list of messages alone, in the message shape of Pydantic AI (1.x and 2.x).

Source of the shape: `pydantic_ai.messages.ModelMessagesTypeAdapter`. The messages are read as plain
JSON and never through the library, which refuses kinds that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile

from sessions_app.core.formats.fields import (
    as_array,
    as_object,
    is_count,
    is_identifier,
    is_name,
    parse_time,
)
from sessions_app.core.formats.shapes import MESSAGE, check_shape
from sessions_app.core.formats.values import message_value
from sessions_app.core.history import History, extend
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import (
    OUTPUT_PROCESSED,
    ErrorInfo,
    ModelCall,
    Run,
    RunStatus,
    Step,
    ToolCall,
    says_there_is_no_tool,
)


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message with what is needed to read it."""

    payload: Payload
    value: JsonObject

    @property
    def is_response(self) -> bool:
        return self.value.get("kind") == "response"

    @property
    def parts(self) -> list[JsonObject]:
        parts = self.value.get("parts")
        return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []

    def parts_of(self, *kinds: str) -> list[JsonObject]:
        return [part for part in self.parts if part.get("part_kind") in kinds]

    @property
    def moment(self) -> datetime | None:
        return _moment(self.value.get("timestamp"))

    @property
    def run_id(self) -> str | None:
        return _identifier(self.value.get("run_id"))


def read_messages(payloads: list[Payload]) -> list[Message]:
    """Raises `RecordError` where a field that is looked at has another type."""
    for position, payload in enumerate(payloads):
        check_shape(payload.content, MESSAGE, f"messages[{position}]")
    return [Message(payload=payload, value=payload.value) for payload in payloads]


def run_from_messages(messages: list[Message], *, run_id: str, source_format: str) -> Run:
    """The last run in the list; what stands before it becomes the run's prior history."""
    start = _start_of_last_run(messages)
    prior, own = messages[:start], messages[start:]
    walk = _Walk(prior)
    for message in own:
        walk.take(message)
    steps = _mark_output_calls(walk.steps)
    first = next((m.value for m in own if m.is_response), {})
    conversation_id = messages[-1].value.get("conversation_id") if messages else None
    return Run(
        run_id=run_id,
        session_id=_identifier(conversation_id) or run_id,
        source_format=source_format,
        input=_input(own),
        instructions=_instructions(own),
        model=_name(first.get("model_name")) or None,
        provider=_name(first.get("provider_name")),
        started_at=next((m.moment for m in own if m.moment), None),
        duration_ms=_milliseconds(own[0].moment, own[-1].moment) if own else None,
        prior=extend(None, (m.payload for m in prior)),
        deferred=walk.deferred_results(),
        steps=steps,
        final=walk.history,
        **_outcome(own, steps),
    )


_ANSWERS = ("tool-return", "retry-prompt")


# --- steps -------------------------------------------------------------------------------------


@dataclass
class _Walk:
    """Goes through the messages once and keeps the calls that are still open."""

    prior: list[Message]
    history: History | None = None
    steps: list[Step] = field(default_factory=list)
    open_calls: dict[str, int] = field(default_factory=dict)
    """Call id to position in `steps`."""
    carried_over: dict[str, int] = field(default_factory=dict)
    """Calls that an earlier run left open and this one got answers for."""
    asked_at: datetime | None = None

    def __post_init__(self) -> None:
        self.history = extend(None, (m.payload for m in self.prior))
        behind = list(takewhile(lambda message: not message.is_response, reversed(self.prior)))
        if len(behind) < len(self.prior):
            self._open(self.prior[-1 - len(behind)], parent=None, settled=_answered_in(behind))
            self.carried_over = dict(self.open_calls)

    def take(self, message: Message) -> None:
        if message.is_response:
            self._answer_of_model(message)
        else:
            self._answers_of_tools(message)
            self.asked_at = message.moment
        self.history = History(self.history, message.payload)

    def _answer_of_model(self, message: Message) -> None:
        index = len(self.steps) + 1
        name = _name(message.value.get("model_name")) or "model"
        self.steps.append(
            Step(
                index=index,
                name=name,
                call=_model_call(message, self.history),
                started_at=self.asked_at,
                duration_ms=_milliseconds(self.asked_at, message.moment),
            )
        )
        self.open_calls.clear()
        self._open(message, parent=index)

    def _open(self, message: Message, parent: int | None, *, settled: frozenset[str] = frozenset()) -> None:
        """The calls of an answer, but for those that were settled before this run began."""
        for part, slice_ in _parts_with_slices(message, "tool-call"):
            if part.get("tool_call_id") in settled:
                continue
            call = ToolCall(
                tool_name=_name(part.get("tool_name")) or "tool",
                call_id=_name(part.get("tool_call_id")),
                arguments=_slice_payload(slice_, "args"),
            )
            index = len(self.steps) + 1
            self.steps.append(Step(index=index, name=call.tool_name, call=call, parent=parent))
            self.open_calls[call.call_id or f"#{index}"] = index - 1

    def _answers_of_tools(self, message: Message) -> None:
        answered = []
        for part, slice_ in _parts_with_slices(message, *_ANSWERS):
            position = self._position_of(part)
            if position is not None:
                step = self.steps[position]
                assert isinstance(step.call, ToolCall)
                self.steps[position] = replace(step, call=_answered(step.call, part, slice_))
                answered.append(position)
        self._attach_content(message, answered)
        if message.value.get("state") == "interrupted":
            self._interrupt()

    def _position_of(self, part: JsonObject) -> int | None:
        call_id = _name(part.get("tool_call_id"))
        if call_id in self.open_calls:
            return self.open_calls.pop(call_id)
        named = [
            (key, position)
            for key, position in self.open_calls.items()
            if key.startswith("#") and self.steps[position].name == part.get("tool_name")
        ]
        return self.open_calls.pop(named[0][0]) if named else None

    def _attach_content(self, message: Message, answered: list[int]) -> None:
        """User parts beside tool answers are what tools sent along; they stand in the tools' order. The last of those
        beside what the run was resumed with is its own prompt."""
        contents = [slice_ for _, slice_ in _parts_with_slices(message, "user-prompt")]
        if any(self.steps[position].parent is None for position in answered):
            contents = contents[:-1]
        for position, slice_ in zip(reversed(answered), reversed(contents), strict=False):
            step = self.steps[position]
            assert isinstance(step.call, ToolCall)
            content = _slice_payload(slice_, "content", null_is_value=False)
            self.steps[position] = replace(step, call=replace(step.call, content=content))

    def _interrupt(self) -> None:
        for position in self.open_calls.values():
            step = self.steps[position]
            assert isinstance(step.call, ToolCall)
            error = ErrorInfo(type=None, message=None)
            self.steps[position] = replace(step, call=replace(step.call, outcome="crashed"), error=error)

    def deferred_results(self) -> Payload | None:
        """Whether each carried-over call was approved or denied, by call id."""
        calls = [self.steps[position].call for position in self.carried_over.values()]
        results = {c.call_id: c.outcome for c in calls if isinstance(c, ToolCall) and c.outcome}
        return Payload.of_json(results) if results else None


def _model_call(message: Message, history: History | None) -> ModelCall:
    value = message.value
    usage = value.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return ModelCall(
        history=history,
        response=message.payload,
        model=_name(value.get("model_name")),
        answered_model=_name(value.get("model_name")),
        provider=_name(value.get("provider_name")),
        finish_reason=_name(value.get("finish_reason")),
        input_tokens=_count(usage.get("input_tokens")),
        output_tokens=_count(usage.get("output_tokens")),
    )


def _answered_in(messages: list[Message]) -> frozenset[str]:
    """Ids of the calls that they answer."""
    parts = (part for message in messages for part in message.parts_of(*_ANSWERS))
    return frozenset(call_id for part in parts if (call_id := _name(part.get("tool_call_id"))) is not None)


def _answered(call: ToolCall, part: JsonObject, slice_: JsonSlices) -> ToolCall:
    is_retry = part.get("part_kind") == "retry-prompt"
    retry = part.get("retry") if isinstance(part.get("retry"), dict) else None
    return replace(
        call,
        result=_slice_payload(slice_, "content"),
        outcome="retried" if is_retry else _name(part.get("outcome")) or "success",
        retry=_legacy_retry(part) if is_retry else retry,
        metadata=None if part.get("metadata") is None else _slice_payload(slice_, "metadata"),
    )


def _legacy_retry(part: JsonObject) -> JsonObject:
    """1.x kept no cause; it shows in the content: a list of errors, a known sentence, or the tool's own."""
    content = part.get("content")
    if isinstance(content, list):
        return {"cause": "validation_error"}
    is_unknown = says_there_is_no_tool(content, _name(part.get("tool_name")))
    return {"cause": "unknown_tool" if is_unknown else "model_retry"}


def _mark_output_calls(steps: list[Step]) -> tuple[Step, ...]:
    names = {s.name for s in steps if isinstance(s.call, ToolCall) and _is_processed(s.call)}
    return tuple(
        replace(step, call=replace(step.call, is_output=True))
        if isinstance(step.call, ToolCall) and step.name in names
        else step
        for step in steps
    )


def _is_processed(call: ToolCall) -> bool:
    return call.result is not None and call.result.value == OUTPUT_PROCESSED


# --- the run as a whole ------------------------------------------------------------------------


def _start_of_last_run(messages: list[Message]) -> int:
    last = messages[-1].run_id if messages else None
    if last is not None:
        return next(i for i, m in enumerate(messages) if m.run_id == last)
    starts = [i for i in range(1, len(messages)) if _begins_turn(messages[i - 1], messages[i])]
    return starts[-1] if starts else 0


def _begins_turn(before: Message, message: Message) -> bool:
    ended = before.is_response and not before.parts_of("tool-call")
    return ended and not message.is_response and bool(message.parts_of("user-prompt"))


def _input(own: list[Message]) -> Payload | None:
    """The prompt of the first message; beside answers of tools it stands last."""
    prompts = [slice_ for message in own[:1] for _, slice_ in _parts_with_slices(message, "user-prompt")]
    if not prompts:
        return None
    place = -1 if own[0].parts_of(*_ANSWERS) else 0
    return _slice_payload(prompts[place], "content", null_is_value=False)


def _instructions(own: list[Message]) -> str | None:
    for message in own:
        text = _text(message.value.get("instructions"))
        if text is not None:
            return text
    system = [_text(p.get("content")) for m in own[:1] for p in m.parts_of("system-prompt")]
    return "\n\n".join(text for text in system if text) or None


def _outcome(own: list[Message], steps: tuple[Step, ...]) -> JsonObject:
    """Status, output and error as the last messages tell them."""
    if not own:
        return {"status": "cut_off"}
    if own[-1].value.get("state") == "interrupted":
        return {"status": "error", "error": ErrorInfo(type=None, message=None)}
    processed = [s.call for s in steps if isinstance(s.call, ToolCall) and _is_processed(s.call)]
    if processed and not own[-1].is_response:
        return {"status": _ok(), "output": _json_arguments(processed[-1])}
    if own[-1].is_response and not own[-1].parts_of("tool-call"):
        return {"status": _ok(), "output": text_output(own[-1])}
    return {"status": "cut_off"}


def _ok() -> RunStatus:
    return "ok"


def _json_arguments(call: ToolCall) -> Payload | None:
    if call.arguments is None or not isinstance(call.arguments.parsed, dict | list):
        return call.arguments
    return Payload(content=call.arguments.content)


def text_output(message: Message) -> Payload:
    parts = [_text(part.get("content")) or "" for part in message.parts_of("text")]
    return Payload.of_text("".join(parts))


# --- reading loosely ---------------------------------------------------------------------------

JsonSlices = dict[str, bytes]


def _parts_with_slices(message: Message, *kinds: str) -> Iterator[tuple[JsonObject, JsonSlices]]:
    """Parts of some kinds, each as a value and as the exact slices of its fields."""
    if not message.parts_of(*kinds):
        return
    raw = as_object(message.payload.content, "message").get("parts", b"[]")
    for part, slice_ in zip(Payload(content=raw).value, as_array(raw, "parts"), strict=True):
        if isinstance(part, dict) and part.get("part_kind") in kinds:
            yield part, as_object(slice_, "part")


def _slice_payload(slices: JsonSlices, name: str, *, null_is_value: bool = True) -> Payload | None:
    raw = slices.get(name)
    if raw == b"null" and not null_is_value:
        return None
    return None if raw is None else message_value(raw)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _name(value: JsonValue) -> str | None:
    """A text that is fit to be shown and indexed as a name; anything else stays in the message alone."""
    return value if is_name(value) else None


def _identifier(value: JsonValue) -> str | None:
    return value if is_identifier(value) else None


def _count(value: JsonValue) -> int | None:
    return value if is_count(value) else None


def _moment(value: JsonValue) -> datetime | None:
    try:
        return parse_time(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _milliseconds(start: datetime | None, end: datetime | None) -> float | None:
    """None when either end is unknown, or the clocks disagree."""
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds() * 1000
