"""Tools and searches in MLflow's spans."""

from __future__ import annotations

from sessions_app.core.conventions.mlflow.model import CONVENTION
from sessions_app.core.conventions.owners import as_identifier
from sessions_app.core.conventions.wrapped_tools import Unwrapped, call_ids, unwrapped_answer, unwrapped_arguments
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import Read, as_number
from sessions_app.core.spans.provider_messages import messages_of
from sessions_app.core.spans.provider_messages.fields import entry, first
from sessions_app.core.spans.reading import Reading, ResultPart, RetrievedChunk
from sessions_app.core.spans.span import Span


def tool_reading(said: Read, span: Span) -> Reading:
    """A run of a tool; in LangChain also with the id of the call."""
    arguments = unwrapped_arguments(said.json("mlflow.spanInputs"))
    answer = _answer(said.json("mlflow.spanOutputs"))
    name = said.json("mlflow.spanFunctionName")
    call_id, other = call_ids(as_identifier(said.json("tool_call_id")), arguments.call_id, answer.call_id)
    return Reading(
        convention=CONVENTION,
        tool_name=name if isinstance(name, str) and name else span.name or None,
        other_tool_name=answer.tool_name,
        call_id=call_id,
        other_call_id=other,
        arguments=arguments.value,
        has_arguments=said.has("mlflow.spanInputs"),
        result=answer.value,
        has_result=said.has("mlflow.spanOutputs"),
    )


def _answer(value: JsonValue) -> Unwrapped:
    """LangGraph's `Command` holds the tool's answer as the last of the messages that it adds."""
    update = entry(value, "update") if isinstance(value, dict) and "goto" in value else {}
    messages = messages_of(update.get("messages"))
    newest = messages[-1].parts[-1:] if messages else ()
    if newest and isinstance(result := newest[0], ResultPart):
        return Unwrapped(value=result.content, call_id=result.call_id, is_error=result.is_error)
    return unwrapped_answer(value)


def retrieval_reading(said: Read, span: Span) -> Reading:
    """A search: its query, and documents as `{"page_content", "metadata", "id"}`."""
    inputs, found = said.json("mlflow.spanInputs"), said.json("mlflow.spanOutputs")
    is_list = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    return Reading(
        convention=CONVENTION,
        name=span.name or None,
        query=_only(inputs),
        chunks=tuple(_chunk(each) for each in found) if is_list else None,
        output=None if is_list else found,
    )


def _only(inputs: JsonValue) -> JsonValue:
    """The one argument of a function that has one."""
    return next(iter(inputs.values())) if isinstance(inputs, dict) and len(inputs) == 1 else inputs


def _chunk(document: JsonObject) -> RetrievedChunk:
    metadata = entry(document, "metadata")
    return RetrievedChunk(
        chunk_id=as_identifier(first({**metadata, **document}, "id", "chunk_id", "doc_uri")),
        score=as_number(first({**metadata, **document}, "score")),
        content=first(document, "page_content", "content", "text"),
        extra=metadata,
    )
