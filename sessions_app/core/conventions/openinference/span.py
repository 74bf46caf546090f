"""OpenInference (Arize Phoenix and others): `openinference.span.kind`, `llm.*`, `tool.*`, `retrieval.documents.*`.

Source: https://arize-ai.github.io/openinference/spec/semantic_conventions.html and what its instrumentations send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessions_app.core.conventions.openinference.messages import HIDDEN, answer_of, input_messages, told
from sessions_app.core.conventions.openinference.model import definition_of, model_fields
from sessions_app.core.conventions.openinference.search import embedding_fields, retrieval_fields
from sessions_app.core.conventions.owners import SESSION, TENANT, USER, as_identifier, attribute_identifier, identifier
from sessions_app.core.conventions.steering import is_steering
from sessions_app.core.conventions.told_twice import (
    is_another_conversation,
    is_repeated_otherwise,
    is_value_told_otherwise,
)
from sessions_app.core.conventions.wrapped_tools import call_ids, unwrapped_answer, unwrapped_arguments
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.attributes import Read, as_text, error_of
from sessions_app.core.spans.provider_messages import messages_in_state
from sessions_app.core.spans.provider_messages.requests import instructions_of
from sessions_app.core.spans.reading import Reading, ReadingKind, ToolDefinition
from sessions_app.core.spans.span import Span

CONVENTION = "openinference"
_SPAN_KIND = "openinference.span.kind"
_KINDS: dict[str, ReadingKind] = {
    "LLM": "model",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "chain",
    "RETRIEVER": "retrieval",
    "RERANKER": "retrieval",
    "EMBEDDING": "embedding",
}
_SIGNS: tuple[tuple[str, ReadingKind], ...] = (
    ("llm.input_messages.", "model"),
    ("llm.output_messages.", "model"),
    ("llm.token_count.", "model"),
    ("retrieval.documents.", "retrieval"),
    ("reranker.output_documents.", "retrieval"),
    ("embedding.embeddings.", "embedding"),
)
"""Attributes that no other convention has, for spans that do not name their kind."""
_OF_A_REQUEST = frozenset({"messages", "input", "contents"})
_OF_AN_ANSWER = ("messages", "answer", "finish_reason", "input_tokens", "output_tokens")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Whole:
    """What went into the span's operation and what came out; None for what was not captured."""

    input: JsonValue
    output: JsonValue
    has_input: bool
    has_output: bool


def read(span: Span) -> Reading | None:
    """None for a span that has neither a kind of OpenInference nor attributes that only it has."""
    read = Read(span.attributes)
    kind = _kind_of(read)
    if kind is None:
        return None
    whole = _whole(read)
    fields = _fields(read, kind, whole, span)
    if kind == "model" and _is_preparation(fields, whole, span):
        kind = "chain"
    if kind == "model":
        read.used -= _not_understood(fields)
    fields = {"kind": kind, "error": error_of(span), **_names(read, kind, span), **fields}
    fields["is_error_harmless"] = is_steering(fields["error"])
    return Reading(convention=CONVENTION, used=frozenset(read.used), **fields)


def _kind_of(read: Read) -> ReadingKind | None:
    if read.has(_SPAN_KIND):
        named = read.raw(_SPAN_KIND)
        return _KINDS.get(named.upper(), "chain") if isinstance(named, str) else "chain"
    names = tuple(read.names())
    return next((kind for sign, kind in _SIGNS if any(name.startswith(sign) for name in names)), None)


def _whole(read: Read) -> _Whole:
    return _Whole(
        input=_value(read, "input"),
        output=_value(read, "output"),
        has_input=_raw(read, "input.value") is not None,
        has_output=_raw(read, "output.value") is not None,
    )


def _raw(read: Read, name: str) -> JsonValue:
    return told(read.raw(name))


def _value(read: Read, side: str) -> JsonValue:
    """JSON where the mime type says so, or where none is given and it looks like an object or a list."""
    value, mime = _raw(read, f"{side}.value"), read.raw(f"{side}.mime_type")
    if isinstance(mime, str):
        return parsed(value) if "json" in mime.lower() else value
    return parsed(value) if isinstance(value, str) and value.lstrip().startswith(("{", "[")) else value


def _fields(read: Read, kind: ReadingKind, whole: _Whole, span: Span) -> dict[str, Any]:
    around = {"input": whole.input, "output": whole.output}
    match kind:
        case "model":
            return {**around, **model_fields(read)}
        case "tool":
            return _tool_fields(read, whole, span)
        case "retrieval":
            return {**around, **retrieval_fields(read, whole.input, whole.output)}
        case "embedding":
            return {**around, **embedding_fields(read)}
        case _:
            return {**around, **_conversation(read, whole, span)}


def _is_preparation(fields: dict[str, Any], whole: _Whole, span: Span) -> bool:
    """Some frameworks mark the function that puts a request together as a model's call, beside the call itself.

    It has no messages, no answer and no usage, and its input is no request.
    """
    if span.status == "error" or any(fields[name] is not None for name in _OF_AN_ANSWER):
        return False
    return isinstance(whole.input, dict) and not _OF_A_REQUEST & whole.input.keys()


def _not_understood(fields: dict[str, Any]) -> set[str]:
    """The raw request and response of a model call, where the messages do not say the same."""
    return {raw for raw, same in (("input.value", "messages"), ("output.value", "answer")) if fields[same] is None}


def _tells_more_than_its_name(tool: ToolDefinition) -> bool:
    return tool.description is not None or tool.parameters is not None


def _tool_fields(read: Read, whole: _Whole, span: Span) -> dict[str, Any]:
    arguments, answer = unwrapped_arguments(whole.input), unwrapped_answer(whole.output)
    said = ErrorInfo(type=None, message=as_text(answer.value)) if answer.is_error else None
    name, schema = read.text("tool.name") or span.name or None, parsed(span.attributes.get("tool.parameters"))
    call_id, other = call_ids(read.text("tool_call.id"), answer.call_id, arguments.call_id)
    definition = definition_of({"name": name, "description": read.text("tool.description"), "parameters": schema})
    return {
        "tool_name": name,
        "other_tool_name": answer.tool_name,
        "tools": (definition,) if definition is not None and _tells_more_than_its_name(definition) else None,
        "call_id": call_id,
        "other_call_id": other,
        "arguments": arguments.value,
        "has_arguments": whole.has_input,
        "are_arguments_told_otherwise": is_value_told_otherwise(arguments.value, answer.arguments),
        "result": answer.value,
        "has_result": whole.has_output,
        "is_result_told_otherwise": answer.is_told_otherwise,
        "error": error_of(span) or said,
    }


def _conversation(read: Read, whole: _Whole, span: Span) -> dict[str, Any]:
    """Of the run's own span also the messages in the states of a LangGraph agent."""
    states = (whole.input, whole.output) if span.parent_id is None else ()
    begun, ended = map(messages_in_state, states or (None, None))
    said = input_messages(read.under("llm.input_messages."))
    answer = answer_of(read.under("llm.output_messages."), is_choice=False)
    told = None if answer is None else (*(said or ()), answer)
    return {
        "initial": begun or said,
        "conversation": told or ended,
        "is_conversation_told_otherwise": (
            is_another_conversation(begun, said) or is_repeated_otherwise(_system_in(whole.input), said, None)
        ),
    }


def _system_in(value: JsonValue) -> str | None:
    return instructions_of(value.get("system")) if isinstance(value, dict) else None


def _names(read: Read, kind: ReadingKind, span: Span) -> dict[str, Any]:
    """Whose work it is. Metadata of the span or of its request is the team's own and stays to be seen as it came."""
    request = _object(span.attributes.get("llm.invocation_parameters"))
    own = _object(span.attributes.get("metadata"))
    inside = {**_object(request.get("metadata")), **own}
    agent = read.text("agent.name") or as_text(own.get("lc_agent_name"))
    return {
        "name": agent if kind == "agent" else None,
        "agent_name": agent,
        "session_id": _own(read, "session.id") or _inside(read, inside, SESSION),
        "user_id": _own(read, "user.id") or _inside(read, inside, USER) or as_identifier(request.get("user")),
        "tenant_id": _inside(read, inside, TENANT),
    }


def _object(value: JsonValue) -> JsonObject:
    found = parsed(value)
    return found if isinstance(found, dict) else {}


def _own(read: Read, name: str) -> str | None:
    value = as_identifier(read.raw(name))
    return None if value == HIDDEN else value


def _inside(read: Read, metadata: JsonObject, names: tuple[str, ...]) -> str | None:
    """Metadata is one JSON text, or an attribute for each key."""
    return identifier(metadata, names) or attribute_identifier(read, "metadata.", names)
