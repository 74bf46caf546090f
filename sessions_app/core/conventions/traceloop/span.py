"""Traceloop's OpenLLMetry: `traceloop.*` around own functions, and the flattened messages of its older releases.

Source: opentelemetry-semantic-conventions-ai (`SpanAttributes`). What it shares with OpenTelemetry's own conventions
(models, settings, newer messages) is read there.
"""

from __future__ import annotations

from typing import Any

from sessions_app.core.conventions.numbered import numbered
from sessions_app.core.conventions.owners import SESSION, TENANT, USER, attribute_identifier, identifier
from sessions_app.core.conventions.steering import is_steering
from sessions_app.core.conventions.traceloop.messages import completion, prompts
from sessions_app.core.conventions.wrapped_tools import call_ids, unwrapped_answer, unwrapped_arguments
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.attributes import Read, as_text, error_of
from sessions_app.core.spans.provider_messages import messages_in_state
from sessions_app.core.spans.reading import Reading, ReadingKind, ToolDefinition
from sessions_app.core.spans.span import Span

CONVENTION = "traceloop"
_PROMPT, _COMPLETION, _FUNCTIONS = "gen_ai.prompt.", "gen_ai.completion.", "llm.request.functions."
_REQUEST = "llm.request.type"
_SIGNS = ("traceloop.", _PROMPT, _COMPLETION, _FUNCTIONS, _REQUEST)
_REQUESTS: dict[str, ReadingKind] = {
    "chat": "model",
    "completion": "model",
    "embedding": "embedding",
    "rerank": "retrieval",
}
_KINDS: dict[str, ReadingKind] = {"tool": "tool", "agent": "agent", "handoff": "handoff"}
_ASSOCIATION = "traceloop.association.properties."


def read(span: Span) -> Reading | None:
    """None for a span that has nothing of Traceloop's own."""
    if not any(name.startswith(_SIGNS) for name in span.attributes):
        return None
    read = Read(span.attributes)
    kind = _kind_of(read)
    fields = {**_owners(read), **_fields(read, kind)}
    error = error_of(span) or fields.pop("error", None)
    fields |= {"error": error, "is_error_harmless": is_steering(error)}
    return Reading(convention=CONVENTION, kind=kind, used=frozenset(read.used), **fields)


def _kind_of(read: Read) -> ReadingKind | None:
    request, own = read.text(_REQUEST), read.text("traceloop.span.kind")
    if request is not None and request in _REQUESTS:
        return _REQUESTS[request]
    if own == "task" and read.has("gen_ai.operation.name"):
        return None  # The other convention says what the task did, such as a search.
    if own is not None:
        return _KINDS.get(own, "chain")
    return "model" if any(name.startswith((_PROMPT, _COMPLETION)) for name in read.names()) else None


def _fields(read: Read, kind: ReadingKind | None) -> dict[str, Any]:
    match kind:
        case "model":
            return _model_fields(read)
        case "embedding":
            return _embedding_fields(read)
        case "tool":
            return _tool_fields(read)
        case _:
            return _own_fields(read, kind)


def _model_fields(read: Read) -> dict[str, Any]:
    choices = numbered(read.under(_COMPLETION))
    return {
        "messages": prompts(numbered(read.under(_PROMPT))),
        "answer": completion(choices),
        "finish_reason": as_text(choices[0].get("finish_reason")) if choices else None,
        "tools": _tools(read),
        **_usage(read),
    }


def _usage(read: Read) -> dict[str, Any]:
    """No request has no tokens: zero is written where a stream did not tell."""
    asked, answered = read.count("gen_ai.usage.prompt_tokens"), read.count("gen_ai.usage.completion_tokens")
    return {"input_tokens": asked or None, "output_tokens": answered if asked or answered else None}


def _tools(read: Read) -> tuple[ToolDefinition, ...] | None:
    offered = numbered(read.under(_FUNCTIONS))
    return tuple(_tool(each, name) for each in offered if (name := as_text(each.get("name")))) or None


def _tool(said: JsonObject, name: str) -> ToolDefinition:
    schema = parsed(said.get("parameters"))
    return ToolDefinition(
        name=name,
        description=as_text(said.get("description")),
        parameters=schema if isinstance(schema, dict) else None,
    )


def _embedding_fields(read: Read) -> dict[str, Any]:
    found = (each.get("content") for each in numbered(read.under(_PROMPT)))
    texts = [text for text in found if text is not None]
    return {
        "embedding_model": read.text("gen_ai.request.model", "gen_ai.response.model"),
        "input": texts[0] if len(texts) == 1 else texts or None,
        "input_tokens": read.count("gen_ai.usage.prompt_tokens"),
    }


def _tool_fields(read: Read) -> dict[str, Any]:
    asked, answered = read.json("traceloop.entity.input"), read.json("traceloop.entity.output")
    arguments, asked_id = _arguments(asked)
    answer = unwrapped_answer(_inside(answered, "output"))
    call_id, other = call_ids(answer.call_id, asked_id)
    return {
        "tool_name": read.text("traceloop.entity.name"),
        "other_tool_name": answer.tool_name,
        "call_id": call_id,
        "other_call_id": other,
        "arguments": arguments,
        "has_arguments": asked is not None,
        "result": answer.value,
        "has_result": read.has("traceloop.entity.output"),
        "error": ErrorInfo(type=None, message=as_text(answer.value)) if answer.is_error else None,
    }


def _arguments(asked: JsonValue) -> tuple[JsonValue, str | None]:
    """Of an own function, or as LangChain's callback gives them: `{"input_str", "inputs", "kwargs", …}`."""
    if not isinstance(asked, dict) or "input_str" not in asked:
        plain = unwrapped_arguments(asked)
        return plain.value, plain.call_id
    inputs, around = asked.get("inputs"), asked.get("kwargs")
    call_id = as_text(around.get("tool_call_id")) if isinstance(around, dict) else None
    return asked["input_str"] if inputs is None else inputs, call_id


def _own_fields(read: Read, kind: ReadingKind | None) -> dict[str, Any]:
    """Workflows, agents and tasks."""
    name = read.text("traceloop.entity.name") or (read.text("traceloop.workflow.name") if kind == "chain" else None)
    asked = _asked(read.json("traceloop.entity.input"))
    answered = _inside(read.json("traceloop.entity.output"), "outputs")
    is_run = read.text("traceloop.span.kind") == "workflow"
    return {
        "name": name,
        "agent_name": name if kind == "agent" else None,
        "input": asked,
        "initial": messages_in_state(asked) if is_run else None,
        "output": answered,
        "conversation": messages_in_state(answered) if is_run else None,
    }


def _asked(value: JsonValue) -> JsonValue:
    """The one argument of a function, its named arguments, or what LangChain calls `inputs`."""
    plain = unwrapped_arguments(_inside(value, "inputs")).value
    if isinstance(plain, dict) and plain.keys() == {"args", "kwargs"} and not plain["kwargs"]:
        listed = plain["args"]
        return listed[0] if isinstance(listed, list) and len(listed) == 1 else plain
    return plain


def _inside(value: JsonValue, name: str) -> JsonValue:
    """What LangChain's callback puts beside tags and keyword arguments of its own."""
    is_wrapper = isinstance(value, dict) and {name, "kwargs"} <= value.keys() <= {name, *_BESIDE}
    return value[name] if is_wrapper else value


_BESIDE = ("kwargs", "tags", "metadata")


def _owners(read: Read) -> dict[str, Any]:
    """Of the properties that the application gave, or of LangChain's metadata beside the input."""
    asked = read.json("traceloop.entity.input")
    metadata = asked.get("metadata") if isinstance(asked, dict) and "kwargs" in asked else None
    inside = metadata if isinstance(metadata, dict) else {}
    return {
        field: attribute_identifier(read, _ASSOCIATION, names) or identifier(inside, names)
        for field, names in (("session_id", SESSION), ("user_id", USER), ("tenant_id", TENANT))
    }
