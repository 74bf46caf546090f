"""A run as one OTLP export request: a span for the run, a span for each step."""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.formats.json_writer import array_text
from sessions_app.core.history import History
from sessions_app.core.otlp_export import names
from sessions_app.core.otlp_export.attributes import Value, attribute_list, json_attribute
from sessions_app.core.otlp_export.facts import facts_of_run
from sessions_app.core.otlp_export.messages import MessageWriter
from sessions_app.core.otlp_export.steps import (
    INTERNAL,
    attributes_of_step,
    described,
    one_message,
    text_parts,
)
from sessions_app.core.otlp_export.times import Times, times_of
from sessions_app.core.payload import JsonObject, compact_json
from sessions_app.core.run import ErrorInfo, ModelCall, Run, Step

SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
MAX_BYTES = 64 * 1024 * 1024
"""GenAI repeats the whole conversation at each call, so a long run grows with its square."""
_ERROR = 2


def export_run(run: Run, max_bytes: int = MAX_BYTES) -> bytes:
    """One `ExportTraceServiceRequest` as OTLP JSON; raises `RecordTooLarge` before it writes more than this."""
    _check_size(run, max_bytes)
    writer = MessageWriter()
    whole, times = times_of(run)
    spans = [_root(run, whole, writer)]
    for step, parent, at in zip(run.steps, _parents(run), times, strict=True):
        spans.append(_span(run.run_id, step, parent, at, writer))
    service: dict[str, Value] = {"service.name": run.agent.name or "agent"}
    scope = {"scope": {"name": "agent-replay"}, "spans": spans, "schemaUrl": SCHEMA}
    resource = {"resource": {"attributes": attribute_list(service)}, "scopeSpans": [scope], "schemaUrl": SCHEMA}
    return compact_json({"resourceSpans": [resource]})


def _check_size(run: Run, max_bytes: int) -> None:
    """Before anything is written, from the sizes of the messages and tools that each call repeats."""
    sizes = _Sizes()
    repeated = 0
    for _, call in run.model_calls:
        repeated += sizes.of(call.history) + sum(tool.size for tool in call.tools or ())
        repeated += call.parameters.size if call.parameters else 0
    if repeated > max_bytes:
        raise RecordTooLarge(
            f"As spans, which repeat the conversation at each call, this run would have over {max_bytes} bytes; "
            "take the native record."
        )


class _Sizes:
    """Bytes of a history's messages, each beginning counted once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, history: History | None) -> int:
        pending = []
        while history is not None and history.digest not in self._known:
            pending.append(history)
            history = history.parent
        total = self._known[history.digest] if history else 0
        for node in reversed(pending):
            total += node.message.size
            self._known[node.digest] = total
        return total


# --- spans -------------------------------------------------------------------------------------


def _root(run: Run, times: Times, writer: MessageWriter) -> JsonObject:
    return _written(
        run.run_id,
        index=0,
        parent=None,
        name=f"invoke_agent {run.agent.name}" if run.agent.name else "invoke_agent",
        kind=INTERNAL,
        times=times,
        attributes=attributes_of_run(run, writer),
        error=run.error,
        has_failed=run.status == "error",
    )


def attributes_of_run(run: Run, writer: MessageWriter) -> dict[str, Value]:
    """All attributes of the run's span."""
    payloads = {"input": run.input, "output": run.output}
    types = {field: payload.media_type for field, payload in payloads.items() if payload is not None}
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": run.agent.name,
        "gen_ai.agent.version": run.agent.version,
        "gen_ai.conversation.id": run.session_id,
        "gen_ai.provider.name": run.provider,
        "gen_ai.request.model": run.model,
        "gen_ai.system_instructions": text_parts(run.instructions),
        "gen_ai.input.messages": one_message("user", run.input),
        "gen_ai.output.messages": one_message("assistant", run.output),
        "gen_ai.usage.input_tokens": _total(call.input_tokens for _, call in run.model_calls),
        "gen_ai.usage.output_tokens": _total(call.output_tokens for _, call in run.model_calls),
        "user.id": run.user_id,
        "error.type": run.error.type if run.error else None,
        names.VERSION: 1,
        names.STEPS: len(run.steps),
        names.MEDIA_TYPES: json_attribute(types or None),
        names.PRIOR: _conversation(run.prior, writer),
        names.FINAL: _conversation(run.final, writer),
        names.RUN: facts_of_run(run),
    }


def _conversation(history: History | None, writer: MessageWriter) -> str | None:
    return None if history is None else array_text(writer.texts(history)).decode()


def _total(counts: Iterable[int | None]) -> int | None:
    """None when no call says."""
    known = [count for count in counts if count is not None]
    return min(sum(known), 2**63 - 1) if known else None


def _span(run_id: str, step: Step, parent: int, times: Times, writer: MessageWriter) -> JsonObject:
    said = described(step, writer)
    return _written(
        run_id,
        index=step.index,
        parent=parent,
        name=said.name,
        kind=said.kind,
        times=times,
        attributes=attributes_of_step(step, said),
        error=step.error,
        has_failed=step.error is not None,
    )


def _parents(run: Run) -> list[int]:
    """A tool stands beside the model call that asked for it; inside a step stands only what ran inside it."""
    parents: list[int] = []
    for step in run.steps:
        parent = step.parent or 0
        is_asked = parent > 0 and isinstance(run.steps[parent - 1].call, ModelCall)
        parents.append(parents[parent - 1] if is_asked else parent)
    return parents


def _written(
    run_id: str,
    *,
    index: int,
    parent: int | None,
    name: str,
    kind: int,
    times: Times,
    attributes: dict[str, Value],
    error: ErrorInfo | None,
    has_failed: bool,
) -> JsonObject:
    start, end = times
    above = {} if parent is None else {"parentSpanId": names.span_id(run_id, parent)}
    return {
        "traceId": names.trace_id(run_id),
        "spanId": names.span_id(run_id, index),
        **above,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": attribute_list(attributes),
        **({"events": [_exception(error, end)]} if error else {}),
        **({"status": _status(error)} if has_failed else {}),
    }


def _exception(error: ErrorInfo, at: int) -> JsonObject:
    stack = error.extra.get("stacktrace")
    said: dict[str, Value] = {
        "exception.type": error.type,
        "exception.message": error.message,
        "exception.stacktrace": stack if isinstance(stack, str) else None,
    }
    return {"timeUnixNano": str(at), "name": "exception", "attributes": attribute_list(said)}


def _status(error: ErrorInfo | None) -> JsonObject:
    message = error.message if error else None
    return {"code": _ERROR, "message": message} if message else {"code": _ERROR}
