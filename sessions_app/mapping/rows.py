"""Runs and steps to rows."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from hashlib import sha256

from msgspec.structs import replace

from sessions_app.core.call_words import call_words
from sessions_app.core.clipping import clipped, unescaped
from sessions_app.core.formats.json_writer import object_text
from sessions_app.core.formats.native import header_fields
from sessions_app.core.formats.native_steps import write_step
from sessions_app.core.history import History
from sessions_app.core.judge.anomalies.failed.failures import failed_steps
from sessions_app.core.payload import JsonValue, Payload, compact_json
from sessions_app.core.replay.request_key import RequestKeys
from sessions_app.core.run import (
    ErrorInfo,
    ModelCall,
    Retrieval,
    Run,
    Step,
    ToolCall,
    answered,
    asked,
    counted_steps,
    message_count,
)
from sessions_app.core.state import changed_keys
from sessions_app.core.step_summary import StepSummary
from sessions_app.core.strip import strip_of
from sessions_app.mapping.content_keys import holding
from sessions_app.mapping.span_ids import answer_key, span_id_of_run, span_ids_of_step
from sessions_app.mapping.stored import Collector

PREVIEW = 240
"""Characters of a run's values and of errors that lists show."""
STEP_PREVIEW = 160
"""The same of a step: there are many, and a row shows no more."""
KEY_BYTES = 16
"""Of a SHA-256: enough to tell values apart."""
STRIP = 200
"""Letters; of a longer run each stands for some steps that follow one another."""
_INDEXED_NAME = 512
"""Characters of a tool's name that can be searched; an entry of a GIN index holds 2,712 bytes."""
_FORMAT_NAME = 40
_LETTER = 6
"""Bytes of the longest spelling of a character: an escape of JSON."""
_MAX_BIGINT = 2**63 - 1
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_LETTERS = {"model": "m", "tool": "t", "retrieval": "r", "agent": "a"}


def digest_bytes(digest: str | None) -> bytes | None:
    return None if digest is None else bytes.fromhex(digest)


def content_columns(run: Run, into: Collector) -> dict[str, object]:
    """What a run's content has beside its steps. To be called behind `step_rows`: what a step says stands near it."""
    end, begun = _end(run), run.prior.length if run.prior else 0
    # Two runs that add nothing would go on from each other's contents for ever, as often as they grow.
    if end is not None and end.length > begun:
        into.keys.append(holding(end.digest))
    return {
        "header": object_text(header_fields(run, into), run.extra),
        "prior_node": into.node(run.prior),
        "final_node": into.node(run.final),
    }


def _end(run: Run) -> History | None:
    """What a later turn of the conversation goes on from."""
    return run.final or next(
        (call.output_history for _, call in reversed(run.model_calls) if call.output_history), None
    )


def _parent_step(run: Run) -> int | None:
    """None for a number that no step has."""
    step = run.parent.step if run.parent else None
    return step if step is not None and step < 2**31 else None


def run_columns(run: Run) -> dict[str, object]:
    """The columns of a run's row that follow from the run alone."""
    return {
        "origin": run.origin,
        "parent_run_id": run.parent and run.parent.run_id,
        "parent_step": _parent_step(run),
        "status": run.status,
        "source_format": run.source_format[:_FORMAT_NAME],
        "span_id": span_id_of_run(run),
        **_fact_columns(run),
        **_count_columns(run),
    }


def _fact_columns(run: Run) -> dict[str, object]:
    return {
        "agent_name": run.agent.name,
        "agent_version": run.agent.version,
        "commit": run.code.commit,
        "model": run.model or next((call.model for _, call in run.model_calls if call.model), None),
        "provider": run.provider or next((c.provider for _, c in run.model_calls if c.provider), None),
        "user_id": run.user_id,
        "tenant_id": run.tenant_id,
        "started_at": run.started_at,
        "duration_ms": run.duration_ms,
        "input_preview": preview(run.input),
        "output_preview": preview(run.output),
        "error_preview": error_preview(run.error),
    }


def _count_columns(run: Run) -> dict[str, object]:
    counted, failed = counted_steps(run), failed_steps(run)
    names = {call.answered_model or call.model for _, call in run.model_calls} | {run.model}
    return {
        "step_count": len(counted),
        "model_call_count": len(run.model_calls),
        "tool_call_count": len(run.tool_calls),
        "message_count": message_count(run),
        "input_tokens": _total(call.input_tokens for _, call in run.model_calls),
        "output_tokens": _total(call.output_tokens for _, call in run.model_calls),
        "tool_names": sorted({clean(call.tool_name)[:_INDEXED_NAME] for _, call in run.tool_calls}),
        "model_names": sorted(clean(name) for name in names if name),
        "step_kinds": sorted({step.kind for step in run.steps}),
        "strip": strip_of([_letter(step, failed) for step in counted], STRIP),
    }


def step_rows(run: Run, into: Collector) -> list[StepSummary]:
    """The summary of each step."""
    keys, failed = RequestKeys(), failed_steps(run)
    rows = [_step_row(step, into, _request_key(step, keys, run.model)) for step in run.steps]
    return [replace(row, tells_failure=True) if row.index in failed and not row.has_error else row for row in rows]


def _request_key(step: Step, keys: RequestKeys, default_model: str | None) -> bytes | None:
    """None without a history: what was asked for is not known then."""
    call = step.call
    return keys.of(call, default_model) if isinstance(call, ModelCall) and call.history else None


def _step_row(step: Step, into: Collector, request_key: bytes | None) -> StepSummary:
    arguments, result = asked(step), shown_answer(step)
    call = step.call
    model = call if isinstance(call, ModelCall) else None
    text = write_step(step, into)
    return StepSummary(
        index=step.index,
        kind=step.kind,
        name=clean(step.name),
        text=into.step_text(text),
        call_id=_clean(call.call_id) if isinstance(call, ToolCall) else None,
        tool_name=_other_name(step),
        parent=step.parent,
        arguments_key=value_key(arguments),
        result_key=value_key(result),
        input_node=into.node(model.history) if model else None,
        output_node=into.node(model.output_history) if model else None,
        request_key=request_key,
        model=_clean(model.answered_model or model.model) if model else None,
        outcome=call.outcome if isinstance(call, ToolCall) else None,
        source=step.source,
        has_error=has_failed(step),
        started_at=step.started_at,
        duration_ms=_storable_number(step.duration_ms),
        first_token_ms=step.first_token_ms,
        input_tokens=model.input_tokens if model else None,
        output_tokens=model.output_tokens if model else None,
        arguments_preview=None if model else preview(arguments, STEP_PREVIEW),
        result_preview=model_preview(model) if model else preview(result, STEP_PREVIEW),
        error_preview=error_preview(step.error),
        state_changes=clean(" ".join(changed_keys(step))) or None,
        has_state=step.state is not None,
        span_ids=tuple(map(bytes.fromhex, span_ids_of_step(step))),
        answer_key=answer_key(step),
    )


def _storable_number(number: float | None) -> float | None:
    """A summary holds whole numbers of 64 bits; the step itself keeps the number as it was sent."""
    return float(number) if number is not None and abs(number) > _MAX_BIGINT else number


def _other_name(step: Step) -> str | None:
    """The tool's, where it is not that of the step."""
    if not isinstance(step.call, ToolCall) or step.call.tool_name == step.name:
        return None
    return clean(step.call.tool_name)


def shown_answer(step: Step) -> Payload | None:
    """A retrieval has no one answer; its chunks' ids tell two retrievals apart."""
    return _chunks(step.call) if isinstance(step.call, Retrieval) else answered(step)


def _chunks(call: Retrieval) -> Payload | None:
    if call.chunks is None:
        return None
    return Payload.of_json([chunk.chunk_id for chunk in call.chunks])


def has_failed(step: Step) -> bool:
    outcome = step.call.outcome if isinstance(step.call, ToolCall) else None
    return step.error is not None or outcome in {"failed", "crashed", "interrupted"}


def value_key(payload: Payload | None) -> bytes | None:
    """Equal for equal values however they were spelled; None when nothing was captured."""
    return None if payload is None else sha256(payload.canonical).digest()[:KEY_BYTES]


def model_preview(call: ModelCall) -> str | None:
    """What the model said and which tools it asked for."""
    if call.response is None or not isinstance(call.response.value, dict):
        return None
    parts = call.response.value.get("parts")
    words = [_part_words(part) for part in parts] if isinstance(parts, list) else []
    return clean(clipped(" · ".join(word for word in words if word), STEP_PREVIEW)) or None


def _part_words(part: JsonValue) -> str | None:
    if not isinstance(part, dict):
        return None
    if part.get("part_kind") == "tool-call":
        return f"→ {part.get('tool_name')} {_arguments_words(part.get('args'))}".rstrip()
    content = part.get("content")
    return content if isinstance(content, str) and part.get("part_kind") == "text" else None


def _arguments_words(arguments: JsonValue) -> str:
    """Some providers give them as a text of JSON."""
    text = arguments if isinstance(arguments, str) else compact_json(arguments).decode() if arguments else ""
    return "" if text == "{}" else call_words(text)


def preview(payload: Payload | None, length: int = PREVIEW) -> str | None:
    if payload is None:
        return None
    if not (payload.is_json or payload.is_text):
        return f"{payload.media_type} · {payload.size} bytes"
    text = payload.content[: (length + 1) * _LETTER].decode("utf-8", errors="replace")
    return clean(clipped(unescaped(text) if payload.is_json else text, length))


def error_preview(error: ErrorInfo | None) -> str | None:
    if error is None:
        return None
    words = ": ".join(part for part in (error.type, error.message) if part)
    return clean(clipped(words or "The error itself was not captured.", PREVIEW))


def clean(text: str) -> str:
    """PostgreSQL's text cannot hold NUL; the stored payload keeps it, columns show its picture.

    Half a surrogate pair, as JSON inside a text may spell it, shows as U+FFFD.
    """
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(lambda found: "␀" if found[0] == "\x00" else "\ufffd", text)


def _clean(text: str | None) -> str | None:
    return None if text is None else clean(text)


def storable(value: JsonValue) -> JsonValue:
    """`clean` for all texts of a column, JSON columns included: the judge quotes what was recorded."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    return value


def _letter(step: Step, failed: Container[int]) -> str:
    letter = _LETTERS[step.kind]
    return letter.upper() if has_failed(step) or step.index in failed else letter


def _total(counts: Iterable[int | None]) -> int | None:
    """None when nothing was captured, or a sum that no column holds: then no count was a true one."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and sum(known) <= _MAX_BIGINT else None
