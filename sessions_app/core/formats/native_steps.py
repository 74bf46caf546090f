"""Steps of the native record, to and from JSON.

The same code writes the record that leaves the server, with payloads inline, and the rows that the
store keeps, with payloads by digest: `Embedding` and `Resolver` say how a payload is held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.fields import Fields, names_of
from sessions_app.core.formats.json_writer import array_text, moment, object_text, scalar
from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.run import (
    AgentCall,
    Call,
    Chunk,
    ErrorInfo,
    HttpExchange,
    ModelCall,
    OtherCall,
    Retrieval,
    StateChange,
    Step,
    StepKind,
    StepSource,
    ToolCall,
)

_KINDS, _SOURCES = names_of(StepKind), names_of(StepSource)
Table = str
"""`parameters` or `tools`: values that many steps share are written once."""


class Embedding(Protocol):
    """How payloads are written into a record."""

    def payload(self, payload: Payload) -> bytes: ...
    def text(self, text: str | None) -> bytes | None: ...
    def shared(self, table: Table, payload: Payload) -> bytes: ...
    def history(self, history: History | None) -> bytes | None: ...
    def step_written(self, step: Step) -> None: ...


class Resolver(Protocol):
    """How payloads are found again when a record is read."""

    def payload(self, slice_: bytes, path: str) -> Payload: ...
    def text(self, fields: Fields, name: str) -> str | None: ...
    def shared(self, table: Table, slice_: bytes, path: str) -> Payload: ...
    def history(self, slice_: bytes | None, path: str) -> History | None: ...
    def step_read(self, step: Step) -> None: ...


def write_step(step: Step, into: Embedding) -> bytes:
    fields = [
        ("kind", scalar(step.kind)),
        ("name", scalar(step.name)),
        ("parent", scalar(step.parent)),
        ("started_at", moment(step.started_at)),
        ("first_token_at", moment(step.first_token_at)),
        ("duration_ms", scalar(step.duration_ms)),
        ("error", write_error(step.error)),
        ("user_id", scalar(step.user_id)),
        ("tenant_id", scalar(step.tenant_id)),
        ("state", _write_state(step.state)),
        ("http", _write_http(step.http, into)),
        ("source", None if step.source == "recorded" else scalar(step.source)),
        *_write_call(step.call, into),
    ]
    text = object_text(fields, step.extra)
    into.step_written(step)
    return text


def read_step(fields: Fields, index: int, resolve: Resolver) -> Step:
    kind: StepKind = fields.required("kind", lambda name: fields.choice(name, _KINDS))
    call = _READERS[kind](fields, resolve)
    step = Step(
        index=index,
        name=fields.name("name") or _default_name(call, kind),
        call=call,
        parent=_parent(fields, index),
        started_at=fields.time("started_at"),
        first_token_at=fields.time("first_token_at"),
        duration_ms=fields.number("duration_ms"),
        error=read_error(fields, "error"),
        user_id=fields.name("user_id"),
        tenant_id=fields.name("tenant_id"),
        state=_read_state(fields),
        http=_read_http(fields.child("http"), resolve),
        source=fields.choice("source", _SOURCES) or "recorded",
        extra=fields.rest(),
    )
    resolve.step_read(step)
    return step


def _parent(fields: Fields, index: int) -> int | None:
    parent = fields.integer("parent", low=1)
    if parent is not None and parent >= index:
        raise fields.error("parent", "must be the index of an earlier step")
    return parent


def _default_name(call: Call, kind: StepKind) -> str:
    return call.tool_name if isinstance(call, ToolCall) else kind


# --- calls -------------------------------------------------------------------------------------


def _write_call(call: Call, into: Embedding) -> list[tuple[str, bytes | None]]:
    match call:
        case ModelCall():
            return _write_model(call, into)
        case ToolCall():
            return _write_tool(call, into)
        case Retrieval():
            return _write_retrieval(call, into)
        case AgentCall():
            return [("run_id", scalar(call.run_id)), *_write_io(call, into)]
        case OtherCall():
            return _write_io(call, into)


def _write_model(call: ModelCall, into: Embedding) -> list[tuple[str, bytes | None]]:
    return [
        ("request", into.history(call.history)),
        ("response", optional(call.response, into)),
        ("parameters", None if call.parameters is None else into.shared("parameters", call.parameters)),
        ("tools", None if call.tools is None else array_text(into.shared("tools", t) for t in call.tools)),
        ("settings", optional(call.settings, into)),
        ("model", scalar(call.model)),
        ("answered_model", scalar(call.answered_model)),
        ("provider", scalar(call.provider)),
        ("region", scalar(call.region)),
        ("finish_reason", scalar(call.finish_reason)),
        ("input_tokens", scalar(call.input_tokens)),
        ("output_tokens", scalar(call.output_tokens)),
    ]


def _read_model(fields: Fields, resolve: Resolver) -> ModelCall:
    parameters = fields.slice("parameters")
    at = fields.at("parameters")
    return ModelCall(
        history=resolve.history(fields.slice("request"), fields.at("request")),
        response=read_payload(fields, "response", resolve),
        parameters=None if parameters is None else resolve.shared("parameters", parameters, at),
        tools=_read_tools(fields, resolve),
        settings=read_payload(fields, "settings", resolve),
        model=fields.name("model"),
        answered_model=fields.name("answered_model"),
        provider=fields.name("provider"),
        region=fields.name("region"),
        finish_reason=fields.name("finish_reason"),
        input_tokens=fields.integer("input_tokens"),
        output_tokens=fields.integer("output_tokens"),
    )


def _read_tools(fields: Fields, resolve: Resolver) -> tuple[Payload, ...] | None:
    items = fields.items("tools")
    if items is None:
        return None
    return tuple(resolve.shared("tools", item, f"{fields.at('tools')}[{i}]") for i, item in enumerate(items))


def _write_tool(call: ToolCall, into: Embedding) -> list[tuple[str, bytes | None]]:
    name = None if call.tool_name is None else scalar(call.tool_name)
    return [
        ("tool_name", name),
        ("call_id", scalar(call.call_id)),
        *_write_io(call, into),
        ("outcome", scalar(call.outcome)),
        ("retry", scalar(call.retry)),
        ("metadata", optional(call.metadata, into)),
        ("content", optional(call.content, into)),
        ("is_output", scalar(True) if call.is_output else None),
    ]


def _read_retry(fields: Fields) -> JsonObject | None:
    retry = fields.object("retry")
    if retry is not None and not isinstance(retry.get("cause"), str | None):
        raise fields.error("retry", "must have a text as its cause")
    return retry


def _read_tool(fields: Fields, resolve: Resolver) -> ToolCall:
    name = fields.name("tool_name") or fields.required("name", fields.name)
    return ToolCall(
        tool_name=name,
        call_id=fields.name("call_id"),
        arguments=read_payload(fields, "arguments", resolve, null_is_value=True),
        result=read_payload(fields, "result", resolve, null_is_value=True),
        outcome=fields.name("outcome"),
        retry=_read_retry(fields),
        metadata=read_payload(fields, "metadata", resolve),
        content=read_payload(fields, "content", resolve),
        is_output=fields.boolean("is_output") or False,
    )


def _write_retrieval(call: Retrieval, into: Embedding) -> list[tuple[str, bytes | None]]:
    chunks = None if call.chunks is None else array_text(_write_chunk(c, into) for c in call.chunks)
    return [
        ("query", optional(call.query, into)),
        ("chunks", chunks),
        ("index_version", scalar(call.index_version)),
        ("embedding_version", scalar(call.embedding_version)),
    ]


def _write_chunk(chunk: Chunk, into: Embedding) -> bytes:
    fields = [
        ("id", scalar(chunk.chunk_id)),
        ("score", scalar(chunk.score)),
        ("content", optional(chunk.content, into)),
    ]
    return object_text(fields, chunk.extra)


def _read_retrieval(fields: Fields, resolve: Resolver) -> Retrieval:
    chunks = fields.children("chunks")
    return Retrieval(
        query=read_payload(fields, "query", resolve),
        chunks=None if chunks is None else tuple(_read_chunk(c, resolve) for c in chunks),
        index_version=fields.name("index_version"),
        embedding_version=fields.name("embedding_version"),
    )


def _read_chunk(fields: Fields, resolve: Resolver) -> Chunk:
    return Chunk(
        chunk_id=fields.name("id"),
        score=fields.number("score"),
        content=read_payload(fields, "content", resolve),
        extra=fields.rest(),
    )


def _read_agent(fields: Fields, resolve: Resolver) -> AgentCall:
    return AgentCall(
        run_id=fields.identifier("run_id"),
        arguments=read_payload(fields, "arguments", resolve, null_is_value=True),
        result=read_payload(fields, "result", resolve, null_is_value=True),
    )


def _read_other(fields: Fields, resolve: Resolver) -> OtherCall:
    return OtherCall(
        arguments=read_payload(fields, "arguments", resolve, null_is_value=True),
        result=read_payload(fields, "result", resolve, null_is_value=True),
    )


_READERS: dict[StepKind, Callable[[Fields, Resolver], Call]] = {
    "model": _read_model,
    "tool": _read_tool,
    "retrieval": _read_retrieval,
    "agent": _read_agent,
    "other": _read_other,
}


# --- parts of a step ---------------------------------------------------------------------------


def _write_io(call: ToolCall | AgentCall | OtherCall, into: Embedding) -> list[tuple[str, bytes | None]]:
    return [("arguments", optional(call.arguments, into)), ("result", optional(call.result, into))]


def optional(payload: Payload | None, into: Embedding) -> bytes | None:
    return None if payload is None else into.payload(payload)


def read_payload(fields: Fields, name: str, resolve: Resolver, *, null_is_value: bool = False) -> Payload | None:
    slice_ = fields.written(name) if null_is_value else fields.slice(name)
    return None if slice_ is None else resolve.payload(slice_, fields.at(name))


def write_error(error: ErrorInfo | None) -> bytes | None:
    if error is None:
        return None
    return object_text([("type", scalar(error.type)), ("message", scalar(error.message))], error.extra)


def read_error(fields: Fields, name: str) -> ErrorInfo | None:
    """An error is an object with `type` and `message`, or a plain sentence."""
    slice_ = fields.slice(name)
    if slice_ is None:
        return None
    if slice_.startswith(b'"'):
        return ErrorInfo(type=None, message=fields.text(name))
    child = Fields(slice_, fields.at(name))
    return ErrorInfo(type=child.name("type"), message=child.text("message"), extra=child.rest())


def _write_state(state: StateChange | None) -> bytes | None:
    if state is None:
        return None
    before = scalar(list(state.before)) if state.before else None
    return object_text([("before", before), ("after", scalar(list(state.after)))])


def _read_state(fields: Fields) -> StateChange | None:
    child = fields.child("state")
    if child is None:
        return None
    change = StateChange(before=_patch(child, "before"), after=_patch(child, "after"))
    child.refuse_rest()
    return change


def _patch(fields: Fields, name: str) -> tuple[JsonObject, ...]:
    operations = [Payload(content=item).value for item in fields.items(name) or []]
    for i, operation in enumerate(operations):
        if not isinstance(operation, dict) or not {"op", "path"} <= operation.keys():
            raise RecordError("A JSON Patch operation has op and path.", field=f"{fields.at(name)}[{i}]")
    return tuple(operations)


def _write_http(http: HttpExchange | None, into: Embedding) -> bytes | None:
    if http is None:
        return None
    fields = [
        ("method", scalar(http.method)),
        ("url", scalar(http.url)),
        ("request_headers", _write_headers(http.request_headers)),
        ("request_body", optional(http.request_body, into)),
        ("status", scalar(http.status)),
        ("response_headers", _write_headers(http.response_headers)),
        ("response_body", optional(http.response_body, into)),
    ]
    return object_text(fields, http.extra)


def _write_headers(headers: tuple[tuple[str, str], ...]) -> bytes | None:
    return scalar([list(pair) for pair in headers]) if headers else None


def _read_http(fields: Fields | None, resolve: Resolver) -> HttpExchange | None:
    if fields is None:
        return None
    return HttpExchange(
        method=fields.name("method"),
        url=fields.text("url"),
        request_headers=_read_headers(fields, "request_headers"),
        request_body=read_payload(fields, "request_body", resolve),
        status=fields.integer("status"),
        response_headers=_read_headers(fields, "response_headers"),
        response_body=read_payload(fields, "response_body", resolve),
        extra=fields.rest(),
    )


def _read_headers(fields: Fields, name: str) -> tuple[tuple[str, str], ...]:
    """A list of [name, value] pairs, or an object; a list keeps repeated headers."""
    value = fields.value(name)
    pairs = [list(pair) for pair in value.items()] if isinstance(value, dict) else value
    if pairs is None:
        return ()
    if not isinstance(pairs, list) or not all(_is_header(pair) for pair in pairs):
        raise fields.error(name, "must be an object or a list of [name, value] pairs")
    return tuple((key, item) for key, item in pairs)


def _is_header(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
