"""Recording a search for context: what was searched for, and which pieces of text came back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from replay_recorder.context import place_for_step
from replay_recorder.guard import guard
from replay_recorder.tools.calls import written
from replay_recorder.writing.json_text import jsonable
from replay_recorder.writing.json_text import name as as_name

_IDS = ("id", "chunk_id", "doc_id", "document_id", "_id")
_SCORES = ("score", "similarity", "relevance_score", "_score")
_CONTENTS = ("content", "text", "page_content", "chunk", "document")
_VECTORS = ("embedding", "embeddings", "values", "vector")
_NOT_KEPT = frozenset((*_IDS, *_SCORES, *_CONTENTS, *_VECTORS))
"""Beside what has a field of its own: numbers that nobody reads and that are longer than the text."""


def record_retrieval(
    query: Any,
    chunks: Iterable[Any],
    *,
    index_version: str | None = None,
    embedding_version: str | None = None,
    name: str | None = None,
) -> None:
    """Record a search that has been made, in the run that the code runs inside; outside one, do nothing.

    A chunk is a dict or an object with an id, a score and its text under the names that libraries use for them, a
    pair of such an object and its score, or just a text. What else a dict holds is kept, and the `metadata` of an
    object; vectors are not.
    """
    with guard("retrieval"):
        place = place_for_step()
        if place is not None:
            place.run.step(
                "retrieval",
                name=as_name(name),
                parent=place.step,
                query=None if query is None else written(query),
                # What an iterator holds can be read once, and that is for the agent.
                chunks=None if isinstance(chunks, Iterator) else [chunk_of(chunk) for chunk in chunks],
                index_version=as_name(index_version),
                embedding_version=as_name(embedding_version),
            )


def chunk_of(chunk: Any) -> dict[str, Any]:
    if isinstance(chunk, tuple) and len(chunk) == 2 and _score(chunk[1]) is not None:
        return {**chunk_of(chunk[0]), "score": _score(chunk[1])}
    if isinstance(chunk, str | bytes):
        return {"content": written(chunk)}
    content = _first(chunk, _CONTENTS)
    fields = {
        **_further(chunk),
        "id": as_name(_first(chunk, _IDS)),
        "score": _score(_first(chunk, _SCORES)),
        "content": None if content is None else written(content),
    }
    return {key: value for key, value in fields.items() if value is not None}


def _first(chunk: Any, names: tuple[str, ...]) -> Any:
    """The value under the first of these names that there is."""
    found = (chunk.get(name) if isinstance(chunk, Mapping) else getattr(chunk, name, None) for name in names)
    return next((value for value in found if value is not None), None)


def _further(chunk: Any) -> dict[str, Any]:
    """What else a chunk says, for those who look at it."""
    if not isinstance(chunk, Mapping):
        chunk = {"metadata": getattr(chunk, "metadata", None)}
    return {str(key): jsonable(value) for key, value in chunk.items() if key not in _NOT_KEPT}


def _score(value: Any) -> float | None:
    """Numbers of libraries count as well; what is no finite number is none."""
    if value is None or isinstance(value, bool | str | bytes):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
