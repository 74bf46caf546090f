"""LangSmith's attributes over OpenTelemetry: `langsmith.*`, with a run's inputs and outputs as one JSON text each in
`gen_ai.prompt` and `gen_ai.completion`.

Source: https://docs.langchain.com/langsmith/trace-with-opentelemetry and the `langsmith` SDK's OTel exporter.
`langsmith.trace.session_name` is the project and no session.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.conventions.langsmith.chunks import chunks_of
from sessions_app.core.conventions.langsmith.errors import error_in
from sessions_app.core.conventions.langsmith.metadata import RunMetadata
from sessions_app.core.conventions.langsmith.readings import add_answer, add_request, add_response, add_whole
from sessions_app.core.conventions.langsmith.values import first_argument, unwrapped_output
from sessions_app.core.conventions.owners import SESSION, TENANT, USER, attribute_identifier
from sessions_app.core.conventions.steering import is_steering
from sessions_app.core.conventions.wrapped_tools import call_ids, unwrapped_answer, unwrapped_arguments
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.attributes import Read, as_text, error_of
from sessions_app.core.spans.provider_messages import tools_of
from sessions_app.core.spans.provider_messages.requests import settings_of
from sessions_app.core.spans.provider_messages.usage import usage_of
from sessions_app.core.spans.reading import Reading, ReadingKind
from sessions_app.core.spans.span import Span

_KINDS: dict[str, ReadingKind] = {
    "llm": "model",
    "tool": "tool",
    "retriever": "retrieval",
    "embedding": "embedding",
}
_METADATA = "langsmith.metadata."
_REQUEST = "gen_ai.request."
_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
_SAID_TWICE = (
    *("gen_ai.operation.name", "gen_ai.system", "gen_ai.usage.total_tokens", "langsmith.metadata.ls_model_type"),
    *("langsmith.metadata.ls_model_name", "langsmith.metadata.model", "langsmith.metadata.model_name"),
)
"""Understood, and less exact than what says the same."""


def read(span: Span) -> Reading | None:
    """Spans that only have metadata of LangSmith say whose they are, and leave the rest to other conventions."""
    if not any(name.startswith("langsmith.") for name in span.attributes):
        return None
    read = Read(span.attributes)
    reading = _general(span, read)
    if reading.kind is not None:
        read.raw(*_SAID_TWICE)
        _FILL[reading.kind](reading, span, read)
    reading.used = frozenset(read.used)
    return reading


def _general(span: Span, read: Read) -> Reading:
    metadata = RunMetadata(read, _METADATA)
    error = _error(span)
    return Reading(
        convention="langsmith",
        kind=_kind(span, read, metadata),
        name=read.text("langsmith.trace.name") or as_text(span.name),
        framework=metadata.framework,
        framework_version=metadata.framework_version,
        session_id=attribute_identifier(read, _METADATA, SESSION),
        user_id=attribute_identifier(read, _METADATA, USER),
        tenant_id=attribute_identifier(read, _METADATA, TENANT),
        agent_name=metadata.text("lc_agent_name", "ls_agent_name"),
        agent_version=metadata.text("revision_id"),
        error=error,
        is_error_harmless=is_steering(error),
    )


def _kind(span: Span, read: Read, metadata: RunMetadata) -> ReadingKind | None:
    said = read.text("langsmith.span.kind")
    if said is None:
        return None
    kind = _KINDS.get(said.lower(), "chain")
    # An agent of LangChain is a chain that bears the name which all below it carry.
    return "agent" if kind == "chain" and span.name and metadata.text("lc_agent_name") == span.name else kind


def _error(span: Span) -> ErrorInfo | None:
    """LangSmith's exporter makes an `Exception` of every error, with all that is known of it in one text."""
    error = error_of(span)
    if error is None or error.type not in (None, "Exception") or not error.message:
        return error
    found = error_in(error.message)
    return replace(found, extra={**error.extra, **found.extra})


def _inputs(read: Read) -> JsonValue:
    return read.json("gen_ai.prompt")


def _outputs(read: Read) -> JsonValue:
    """Of a run that has none (yet), the outputs are an empty object or `{"output": null}`."""
    said = read.json("gen_ai.completion")
    return None if said in ({}, {"output": None}) else said


def _model_call(reading: Reading, span: Span, read: Read) -> None:
    metadata = RunMetadata(read, _METADATA)
    add_request(reading, _inputs(read))
    add_response(reading, _outputs(read))
    _add_tokens(reading, read, metadata)
    invocation = read.object("langsmith.invocation_params") or {}
    offered = reading.tools or tools_of(read.json("gen_ai.tool.definitions")) or tools_of(invocation.get("tools"))
    reading.tools = offered
    reading.model = read.text("gen_ai.request.model") or metadata.text("ls_model_name") or reading.model
    reading.answered_model = read.text("gen_ai.response.model") or reading.answered_model
    reading.provider = metadata.text("ls_provider") or read.text("gen_ai.system")
    reading.response_id = read.text("gen_ai.response.id") or reading.response_id
    reading.settings = {**_settings(read, metadata, invocation), **(reading.settings or {})} or None
    reading.finish_reason = _finish_reason(read) or reading.finish_reason
    reading.first_token_ns = next((event.time_ns for event in span.events if event.name == "new_token"), None)


def _add_tokens(reading: Reading, read: Read, metadata: RunMetadata) -> None:
    given, said = usage_of(metadata.object("usage_metadata") or {})
    reading.input_tokens = _first_count(read.count("gen_ai.usage.input_tokens"), given, reading.input_tokens)
    reading.output_tokens = _first_count(read.count("gen_ai.usage.output_tokens"), said, reading.output_tokens)


def _settings(read: Read, metadata: RunMetadata, invocation: JsonObject) -> JsonObject:
    sent = {name: read.json(_REQUEST + name) for name in _SETTINGS}
    general = metadata.settings
    found = {**(settings_of(invocation) or {}), **(settings_of(sent) or {})}
    if "max_completion_tokens" in found and "max_tokens" not in found:
        general.pop("max_tokens", None)
    return {**general, **found}


def _finish_reason(read: Read) -> str | None:
    reasons = read.json("gen_ai.response.finish_reasons")
    return as_text(next(iter(reasons), None)) if isinstance(reasons, list) else as_text(reasons)


def _first_count(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def _tool_call(reading: Reading, span: Span, read: Read) -> None:
    metadata = RunMetadata(read, _METADATA)
    given, said = unwrapped_arguments(_inputs(read)), _result(reading, read)
    answer = unwrapped_answer(unwrapped_output(said))
    ids = read.text("gen_ai.tool.call.id"), metadata.text("tool_call_id"), given.call_id, answer.call_id
    add_answer(reading, answer)
    reading.tool_name = read.text("gen_ai.tool.name") or reading.name
    reading.call_id, reading.other_call_id = call_ids(*ids)
    reading.arguments = given.value
    reading.has_arguments = read.has("gen_ai.prompt")
    reading.has_result = said is not None


def _result(reading: Reading, read: Read) -> JsonValue:
    """`{"output": null}` is what a tool gave back that ended well."""
    said = read.json("gen_ai.completion")
    return None if said == {} or (reading.error is not None and said == {"output": None}) else said


def _search(reading: Reading, span: Span, read: Read) -> None:
    reading.query = first_argument(_inputs(read))
    reading.output = _outputs(read)
    reading.chunks = chunks_of(reading.output)


def _embedding(reading: Reading, span: Span, read: Read) -> None:
    metadata = RunMetadata(read, _METADATA)
    reading.embedding_model = read.text("gen_ai.request.model") or metadata.text("ls_model_name")
    reading.input = _inputs(read)
    reading.output = _outputs(read)
    reading.input_tokens = read.count("gen_ai.usage.input_tokens")


def _whole(reading: Reading, span: Span, read: Read) -> None:
    is_run = reading.kind == "agent" or span.parent_id is None
    add_whole(reading, _inputs(read), _outputs(read), is_run)


_FILL = {
    "model": _model_call,
    "tool": _tool_call,
    "retrieval": _search,
    "embedding": _embedding,
    "agent": _whole,
    "chain": _whole,
}
