"""Langfuse's attributes: `langfuse.observation.*`, `langfuse.trace.*`.

Source: https://langfuse.com/integrations/native/opentelemetry#property-mapping and the SDKs for Python and JavaScript.
Values that are no text are JSON inside a text. Functions under `@observe` have `{"args": [], "kwargs": {}}` as input.
"""

from __future__ import annotations

from sessions_app.core.conventions.langfuse.usage import tokens_of
from sessions_app.core.conventions.langsmith.chunks import chunks_of
from sessions_app.core.conventions.langsmith.metadata import RunMetadata
from sessions_app.core.conventions.langsmith.readings import add_answer, add_request, add_response, add_whole
from sessions_app.core.conventions.langsmith.values import first_argument, returned, structured
from sessions_app.core.conventions.owners import SESSION, TENANT, USER, attribute_identifier
from sessions_app.core.conventions.steering import is_steering
from sessions_app.core.conventions.wrapped_tools import call_ids, unwrapped_answer, unwrapped_arguments
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.attributes import Read, as_text, error_of
from sessions_app.core.spans.provider_messages.requests import settings_of
from sessions_app.core.spans.reading import Reading, ReadingKind
from sessions_app.core.spans.span import Span
from sessions_app.core.spans.times import nanoseconds

_OBSERVATION = "langfuse.observation."
_TRACE = "langfuse.trace."
_METADATA = f"{_OBSERVATION}metadata."
_TRACE_METADATA = f"{_TRACE}metadata."
_KINDS: dict[str, ReadingKind] = {
    "generation": "model",
    "tool": "tool",
    "agent": "agent",
    "retriever": "retrieval",
    "embedding": "embedding",
}
_NEVER_SENT = "Infinity"
"""What the wrapper of OpenAI's client writes for a limit that the request did not have."""


def read(span: Span) -> Reading | None:
    """None for spans that Langfuse only marked with its environment or release."""
    if not any(name.startswith((_OBSERVATION, _TRACE)) for name in span.attributes):
        return None
    read = Read(span.attributes)
    reading = _general(span, read)
    _add_trace(reading, read)
    _FILL.get(reading.kind or "chain", _whole)(reading, span, read)
    reading.used = frozenset(read.used)
    return reading


def _general(span: Span, read: Read) -> Reading:
    metadata = RunMetadata(read, _METADATA)
    kind = _kind(read)
    error = _error(span, read)
    return Reading(
        convention="langfuse",
        kind=kind,
        name=as_text(span.name),
        framework=metadata.framework,
        framework_version=metadata.framework_version,
        agent_name=metadata.text("lc_agent_name") or (as_text(span.name) if kind == "agent" else None),
        agent_version=read.text("langfuse.release") or as_text(span.resource.get("langfuse.release")),
        error=error,
        is_error_told_otherwise=_is_other_message(error, read.text(f"{_OBSERVATION}status_message")),
        is_error_harmless=is_steering(error),
    )


def _add_trace(reading: Reading, read: Read) -> None:
    reading.input = structured(read.raw(f"{_TRACE}input"))
    reading.output = structured(read.raw(f"{_TRACE}output"))
    reading.session_id = _owner(read, SESSION)
    reading.user_id = _owner(read, USER)
    reading.tenant_id = _owner(read, TENANT)


def _owner(read: Read, names: tuple[str, ...]) -> str | None:
    """Langfuse's own attributes first (`session.id`), then metadata, where what frameworks pass on can say it too."""
    own = tuple(name for name in names if "." in name)
    passed_on = tuple(f"langfuse_{name}" for name in names)
    places = [
        ("", own),
        ("langfuse.", own),
        (_METADATA, passed_on),
        (_TRACE_METADATA, passed_on + names),
        (_METADATA, names),
    ]
    return next((found for place, said in places if (found := attribute_identifier(read, place, said))), None)


def _kind(read: Read) -> ReadingKind | None:
    said = read.text(f"{_OBSERVATION}type")
    if said is not None:
        return _KINDS.get(said.lower(), "chain")
    if read.has(f"{_OBSERVATION}model.name"):
        return "model"
    return "chain" if read.has(f"{_OBSERVATION}input") or read.has(f"{_OBSERVATION}output") else None


def _content(read: Read, name: str) -> JsonValue:
    return structured(read.raw(_OBSERVATION + name))


def _error(span: Span, read: Read) -> ErrorInfo | None:
    message = read.text(f"{_OBSERVATION}status_message")
    is_error = read.text(f"{_OBSERVATION}level") == "ERROR"
    return error_of(span) or (ErrorInfo(type=None, message=message) if is_error else None)


def _is_other_message(error: ErrorInfo | None, message: str | None) -> bool:
    """An exception's words may stand behind its class."""
    said = error.message if error is not None else None
    return said is not None and message is not None and said not in message


def _model_call(reading: Reading, span: Span, read: Read) -> None:
    given, said = _content(read, "input"), _content(read, "output")
    model = read.text(f"{_OBSERVATION}model.name")
    metadata = RunMetadata(read, _METADATA)
    asked_for = metadata.text("ls_model_name")
    add_request(reading, given)
    add_response(reading, said)
    _add_tokens(reading, read)
    reading.model = asked_for or reading.model or model
    # The one name there is is first the requested one; the answer's takes its place.
    reading.answered_model = model if reading.answer and model != asked_for else None
    reading.provider = metadata.text("ls_provider")
    reading.settings = {**(reading.settings or {}), **_settings(read, metadata)} or None
    reading.finish_reason = metadata.text("finish_reason") or reading.finish_reason
    reading.first_token_ns = nanoseconds(read.json(f"{_OBSERVATION}completion_start_time"))


def _add_tokens(reading: Reading, read: Read) -> None:
    given, said = tokens_of(read.object(f"{_OBSERVATION}usage_details") or {})
    reading.input_tokens = reading.input_tokens if given is None else given
    reading.output_tokens = reading.output_tokens if said is None else said


def _settings(read: Read, metadata: RunMetadata) -> JsonObject:
    sent = settings_of(read.object(f"{_OBSERVATION}model.parameters") or {}) or {}
    said = metadata.settings
    general = {name: value for name, value in said.items() if not (sent and name == "max_tokens")}
    return {**general, **{name: value for name, value in sent.items() if value != _NEVER_SENT}}


def _tool_call(reading: Reading, span: Span, read: Read) -> None:
    metadata = RunMetadata(read, _METADATA)
    # LangChain's handler gives the arguments as a dict that Python printed, and exactly in the metadata.
    exact, given = metadata.object("inputs"), unwrapped_arguments(_content(read, "input"))
    answer = unwrapped_answer(returned(read.raw(f"{_OBSERVATION}output")))
    add_answer(reading, answer)
    reading.tool_name = as_text(span.name)
    ids = metadata.text("tool_call_id"), given.call_id, answer.call_id
    reading.call_id, reading.other_call_id = call_ids(*ids)
    reading.arguments = given.value if exact is None else exact
    reading.are_arguments_told_otherwise = exact is not None and given.value not in (None, exact, str(exact))
    reading.has_arguments = exact is not None or read.has(f"{_OBSERVATION}input")
    reading.has_result = read.raw(f"{_OBSERVATION}output") is not None


def _search(reading: Reading, span: Span, read: Read) -> None:
    reading.query = first_argument(_content(read, "input"))
    reading.output = _content(read, "output")
    reading.chunks = chunks_of(reading.output)


def _embedding(reading: Reading, span: Span, read: Read) -> None:
    _add_tokens(reading, read)
    reading.embedding_model = read.text(f"{_OBSERVATION}model.name")
    reading.settings = settings_of(read.object(f"{_OBSERVATION}model.parameters") or {})
    reading.input = _content(read, "input")
    reading.output = _content(read, "output")


def _whole(reading: Reading, span: Span, read: Read) -> None:
    given, said = _content(read, "input"), _content(read, "output")
    is_run = reading.kind == "agent" or span.parent_id is None
    given = reading.input if given is None else given
    said = reading.output if said is None else said
    add_whole(reading, given, said, is_run)


_FILL = {"model": _model_call, "tool": _tool_call, "retrieval": _search, "embedding": _embedding}
