"""What a retriever found: documents of LangChain, or rows of the team's own making."""

from __future__ import annotations

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_number
from sessions_app.core.spans.reading import RetrievedChunk

_CONTENT = ("page_content", "pageContent", "text", "content", "document", "chunk")
_ID = ("id", "chunk_id", "document_id", "doc_id", "_id")
_SCORE = ("score", "relevance_score", "similarity", "_score")
_LISTS = ("documents", "output", "results", "chunks", "matches", "docs")


def chunks_of(value: JsonValue) -> tuple[RetrievedChunk, ...] | None:
    """From a list, or an object that holds one; None when there is no list of texts or objects."""
    items = _list_in(value)
    if items is None or not all(isinstance(item, str | dict | list) for item in items):
        return None
    return tuple(_chunk(item) for item in items)


def _list_in(value: JsonValue) -> list[JsonValue] | None:
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    return value if isinstance(value, list) else None


def _chunk(item: JsonValue) -> RetrievedChunk:
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], dict) and as_number(item[1]) is not None:
        return _of_object(item[0] | {"score": item[1]})
    return _of_object(item) if isinstance(item, dict) else RetrievedChunk(content=item)


def _of_object(item: JsonObject) -> RetrievedChunk:
    if "lc" in item and isinstance(item.get("kwargs"), dict):
        item = item["kwargs"]
    names = {said: next((name for name in known if item.get(name) is not None), None) for said, known in _KNOWN.items()}
    if names["content"] is None:
        return RetrievedChunk(content=item, chunk_id=_id(item, names["id"]), score=_score(item, names["score"]))
    return RetrievedChunk(
        content=item[names["content"]],
        chunk_id=_id(item, names["id"]),
        score=_score(item, names["score"]),
        extra={key: value for key, value in item.items() if key not in names.values() and value is not None},
    )


_KNOWN = {"content": _CONTENT, "id": _ID, "score": _SCORE}


def _id(item: JsonObject, name: str | None) -> str | None:
    value = item.get(name) if name else None
    return str(value) if isinstance(value, str | int) and value != "" else None


def _score(item: JsonObject, name: str | None) -> float | None:
    return as_number(item.get(name)) if name else None
