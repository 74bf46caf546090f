"""What was recorded at the step of a fork: it stands beside each change on the form.

Only that step, the next request to the model and the next tool calls are read, however long the run is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.fork.presets import Preset, presets, unfit_presets
from sessions_app.core.payload import JsonObject, JsonValue, Payload, canonical_json, sha256_hex
from sessions_app.core.run import ModelCall, ToolCall
from sessions_app.core.run import Run as Facts
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.load import load_facts, load_steps
from sessions_app.models import Run
from sessions_app.queries import steps
from sessions_app.queries.decisions import decision_on
from sessions_app.queries.steps import GonePayload
from sessions_app.web.forks import values as fork_values
from sessions_app.web.forks.values import NOT_CAPTURED, Value

TOOL_STEPS = 20
MESSAGES = 30
"""Messages of a request, and tool steps, that are offered to choose from."""
_FIRST_WORDS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """Where the fork begins."""

    row: StepSummary
    state: Value
    """Before the step, as the change of the state sees it."""
    state_digest: str | None
    """Of the state after the step before; SHA-256 of its canonical JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """The request to the model at the step, or the next one after it, and its answer."""

    row: StepSummary | None
    message_count: int
    """All of its messages."""
    messages: dict[int, str]
    """First words of its newest messages, by their index from 0."""
    message_index: int | None
    """The one that is shown."""
    message: Value
    instructions: Value
    model: str | None
    settings: Value
    answer_text: Value
    answer_calls: Value


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolAnswer:
    """The answer of the tool at the step, or of one that follows it."""

    rows: tuple[StepSummary, ...]
    """The steps to choose from."""
    row: StepSummary | None
    call: ToolCall | None
    value: Value
    presets: tuple[Preset, ...]
    unfit: Sequence[str]
    """The other presets, each with why this answer has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """All of it."""

    start: Start
    request: Request
    tool: ToolAnswer
    output_is_json: bool
    gone: StoredBytesMissing | None
    """Bytes of the run that are no longer stored: the rest can be shown, and no fork can be made."""


def recorded_at(run: Run, row: StepSummary, *, message_index: int | None, tool_step: int | None) -> Recorded:
    facts, start, gone = _facts_and_start(run, row)
    output = facts.output if facts else None
    return Recorded(
        start=start,
        request=_request(run, row, message_index, facts.instructions if facts else None),
        tool=_tool_answer(run, row, tool_step),
        output_is_json=output is not None and output.is_json,
        gone=gone,
    )


def _facts_and_start(run: Run, row: StepSummary) -> tuple[Facts | None, Start, StoredBytesMissing | None]:
    try:
        return load_facts(run), _start(run, row), None
    except StoredBytesMissing as gone:
        return None, Start(row=row, state=NOT_CAPTURED, state_digest=None), gone


def _start(run: Run, row: StepSummary) -> Start:
    first = max(row.index - 1, 1)
    read, states, _ = load_steps(run, after=first - 1, limit=row.index - first + 1)
    around = dict(zip((step.index for step in read), states, strict=True))
    before = around[row.index][0]
    left = around[row.index - 1][1] if row.index > 1 else before
    return Start(
        row=row,
        state=NOT_CAPTURED if before is None else fork_values.of_json(before),
        state_digest=None if left is None else sha256_hex(canonical_json(left)),
    )


# --- the request -------------------------------------------------------------------------------


def _request(run: Run, row: StepSummary, asked: int | None, instructions: str | None) -> Request:
    found = next((each for each in run.steps[row.index - 1 :] if each.kind == "model"), None)
    call = _model_call(run, found)
    sent = _messages(run, found, asked)
    index = asked if asked in sent else max(sent, default=None)
    answer = fork_values.parts_of(fork_values.value_of(call.response) if call.response else None)
    return Request(
        row=found,
        message_count=max(sent, default=-1) + 1,
        messages={at: _first_words(payload) for at, payload in sent.items()},
        message_index=index,
        message=NOT_CAPTURED if index is None else fork_values.of_message(sent[index]),
        instructions=fork_values.of_text(_instructions(sent) or instructions),
        model=call.model or run.model,
        settings=fork_values.of_payload(call.settings),
        answer_text=NOT_CAPTURED if call.response is None else fork_values.of_text(_said(answer)),
        answer_calls=NOT_CAPTURED if call.response is None else _asked_calls(answer),
    )


def _model_call(run: Run, row: StepSummary | None) -> ModelCall:
    call = steps.step_body(run, row).call if row else None
    return call if isinstance(call, ModelCall) else ModelCall(history=None, response=None)


def _messages(run: Run, row: StepSummary | None, asked: int | None) -> dict[int, Payload]:
    """The newest messages of the request, and the one that is asked for, by index."""
    node = row.input_node if row else None
    chain = steps.chain_of(run, node).messages
    newest = range(max(0, len(chain) - MESSAGES), len(chain))
    wanted = [asked] if asked is not None and asked < newest.start else []
    wanted.extend(newest)
    read = steps.read_messages(run, [chain[index] for index in wanted])
    return dict(zip(wanted, read, strict=True))


def _instructions(sent: dict[int, Payload]) -> str | None:
    """Each request carries those that hold for it."""
    newest = fork_values.value_of(sent[max(sent)]) if sent else None
    said = newest.get("instructions") if isinstance(newest, dict) else None
    return said if isinstance(said, str) else None


def _first_words(payload: Payload) -> str:
    message = fork_values.value_of(payload)
    parts = fork_values.parts_of(message)
    kinds = ", ".join(dict.fromkeys(str(part.get("part_kind")) for part in parts)) or "message"
    text = next((part["content"] for part in parts if isinstance(part.get("content"), str)), "")
    return f"{kinds}: {text[:_FIRST_WORDS]}" if text else kinds


def _said(answer: list[JsonObject]) -> str:
    texts = [part.get("content") for part in answer if part.get("part_kind") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _asked_calls(answer: list[JsonObject]) -> Value:
    calls = [
        {"name": part.get("tool_name"), "arguments": _arguments(part.get("args"))}
        for part in answer
        if part.get("part_kind") == "tool-call"
    ]
    return fork_values.of_json(calls) if calls else Value(text="")


def _arguments(args: JsonValue) -> JsonValue:
    """Many models spell them as a text."""
    return Payload.of_text(args).parsed if isinstance(args, str) and args else args or {}


# --- the tool ----------------------------------------------------------------------------------


def _tool_answer(run: Run, row: StepSummary, asked: int | None) -> ToolAnswer:
    rows = [row] if row.kind == "tool" else list(_later_tools(run, row))
    chosen = next((each for each in rows if each.index == asked), rows[0] if rows else None)
    step = steps.step_body(run, chosen) if chosen else None
    call = step.call if step and isinstance(step.call, ToolCall) else None
    value = fork_values.of_payload(call.result) if call else NOT_CAPTURED
    if step and step.error and value == NOT_CAPTURED:
        value = fork_values.of_error(step.error.message)
    is_stored = call is not None and not isinstance(call.result, GonePayload)
    offered = presets(call, decided=_decided(run, chosen)) if call and chosen and is_stored else []
    unfit = unfit_presets(call) if call and is_stored else []
    return ToolAnswer(rows=tuple(rows), row=chosen, call=call, value=value, presets=tuple(offered), unfit=unfit)


def _decided(run: Run, chosen: StepSummary) -> JsonValue:
    try:
        return decision_on(run, chosen.index)
    except StoredBytesMissing:
        return None


def _later_tools(run: Run, row: StepSummary) -> list[StepSummary]:
    return [each for each in run.steps[row.index :] if each.kind == "tool"][:TOOL_STEPS]
