"""Searches and embeddings in OpenInference's attributes."""

from __future__ import annotations

from typing import Any

from sessions_app.core.conventions.numbered import below, numbered
from sessions_app.core.conventions.openinference.messages import told
from sessions_app.core.conventions.openinference.model import settings_of
from sessions_app.core.conventions.owners import as_identifier
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import Read, as_number, as_text
from sessions_app.core.spans.reading import RetrievedChunk


def retrieval_fields(read: Read, asked: JsonValue, answered: JsonValue) -> dict[str, Any]:
    """`asked` and `answered` are the span's whole input and output."""
    documents = numbered(read.under("retrieval.documents.")) or numbered(read.under("reranker.output_documents."))
    listed = answered.get("documents") if isinstance(answered, dict) else answered
    chunks = _chunks(documents, listed if isinstance(listed, list) else None)
    query = told(read.raw("reranker.query"))
    return {"query": asked if query is None else query, "chunks": chunks}


def _chunks(documents: list[JsonObject], listed: list[JsonValue] | None) -> tuple[RetrievedChunk, ...] | None:
    """None when the documents were not captured; empty when the search found nothing."""
    if not documents:
        return () if listed == [] else None
    beside = listed if listed is not None and len(listed) == len(documents) else [None] * len(documents)
    return tuple(_chunk(below(each, "document."), other) for each, other in zip(documents, beside, strict=True))


def _chunk(document: JsonObject, listed: JsonValue) -> RetrievedChunk:
    """Ids that the attributes leave out may stand in the same place of the output's list."""
    chunk_id = as_identifier(document.get("id")) or (as_text(listed.get("id")) if isinstance(listed, dict) else None)
    extra = {name: parsed(value) for name, value in document.items() if name not in ("id", "content", "score")}
    return RetrievedChunk(
        chunk_id=chunk_id,
        score=as_number(document.get("score")),
        content=told(document.get("content")),
        extra=extra,
    )


def embedding_fields(read: Read) -> dict[str, Any]:
    """The texts as input, one alone or a list, and their vectors as output."""
    items = numbered(read.under("embedding.embeddings."))
    parameters = read.object("embedding.invocation_parameters", "llm.invocation_parameters") or {}
    return {
        "embedding_model": read.text("embedding.model_name", "llm.model_name"),
        "provider": as_text(read.raw("llm.provider", "llm.system")),
        "input_tokens": read.count("llm.token_count.prompt", "llm.token_count.total"),
        "settings": settings_of(parameters),
        **{name: value for name, value in _texts_and_vectors(items).items() if value is not None},
    }


def _texts_and_vectors(items: list[JsonObject]) -> dict[str, JsonValue]:
    return {
        "input": _one_or_all([told(each.get("embedding.text")) for each in items]),
        "output": _one_or_all([told(each.get("embedding.vector")) for each in items]),
    }


def _one_or_all(values: list[JsonValue]) -> JsonValue:
    found = [value for value in values if value is not None]
    return found[0] if len(found) == 1 else found or None
