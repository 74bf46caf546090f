"""Searches: `gen_ai.retrieval.*`, the documents of a task's output, `db.query.result` events of vector stores."""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app.core.conventions.genai.said import Said
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_text
from sessions_app.core.spans.reading import Reading, RetrievedChunk
from sessions_app.core.spans.span import Span, SpanEvent

RESULT = "db.query.result"
_IDS = ("id", "document_id", "chunk_id", "doc_id")
_SCORES = ("score", "relevance_score", "similarity")
_CONTENTS = ("content", "text", "page_content", "document")


def add_retrieval(reading: Reading, said: Said, span: Span) -> None:
    """What the span of a search says."""
    query = said.take(as_text, "gen_ai.retrieval.query.text", "gen_ai.retrieval.query")
    chunks = said.take(_chunks, "gen_ai.retrieval.documents")
    if chunks is None:
        chunks = _of_events(span.events) or said.take(_task_chunks, "gen_ai.task.output")
    reading.query = said.take(_query, "gen_ai.task.input") if query is None else query
    reading.chunks = chunks


def _query(value: JsonValue) -> str | None:
    found = parsed(value)
    return as_text(found.get("query")) if isinstance(found, dict) else None


def _task_chunks(value: JsonValue) -> tuple[RetrievedChunk, ...] | None:
    found = parsed(value)
    return _chunks(found.get("documents")) if isinstance(found, dict) else None


def _chunks(value: JsonValue) -> tuple[RetrievedChunk, ...] | None:
    """None when it is no list of documents; an empty one is a search that found nothing."""
    found = parsed(value)
    if not isinstance(found, list) or not all(isinstance(item, str | dict) for item in found):
        return None
    return tuple(_chunk(item) for item in found)


def _chunk(item: str | JsonObject) -> RetrievedChunk:
    if isinstance(item, str):
        return RetrievedChunk(content=item)
    id_name, score_name, content_name = (_name(item, names) for names in (_IDS, _SCORES, _CONTENTS))
    read = {id_name, score_name, content_name}
    return RetrievedChunk(
        chunk_id=_as_id(item.get(id_name)),
        score=_score(item.get(score_name)),
        content=item.get(content_name),
        extra={name: value for name, value in item.items() if name not in read},
    )


def _name(item: JsonObject, names: tuple[str, ...]) -> str:
    """The first of these that the document has."""
    return next((name for name in names if item.get(name) is not None), names[0])


def _as_id(value: JsonValue) -> str | None:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else as_text(value)


def _score(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 64) else None


def _of_events(events: Iterable[SpanEvent]) -> tuple[RetrievedChunk, ...] | None:
    found = [event.attributes for event in events if event.name == RESULT]
    start = len(RESULT) + 1
    items = [{name[start:]: value for name, value in said.items() if name.startswith(RESULT)} for said in found]
    return tuple(map(_chunk, items)) or None
