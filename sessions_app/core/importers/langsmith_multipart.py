"""Bodies that LangSmith's clients send: `POST /runs/multipart`, multipart/form-data.

Each part is JSON and named `post.<run id>` or `patch.<run id>`, with `.inputs`, `.outputs`, `.events`, `.extra`,
`.error` or `.serialized` behind it where that field has a part of its own. A run comes as one post when it has ended,
or as a post when it begins and a patch when it ends, often in another body. What one body says of a run becomes one
span; a span from a patch alone holds only what the patch said, and has the id of the span from the post, so that the
two can be put together. Attachments and feedback are left out.
"""

from __future__ import annotations

import re

from sessions_app.core.errors import RecordError
from sessions_app.core.importers.entry import Entry
from sessions_app.core.importers.langsmith import run_span
from sessions_app.core.json_text import load_strict
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.span import Span

_FIELDS = ("inputs", "outputs", "events", "extra", "error", "serialized")


def to_spans(content: bytes, content_type: str) -> list[Span]:
    """From a body without its Content-Encoding and the header `Content-Type`, which holds the boundary."""
    runs: dict[str, JsonObject] = {}
    for name, value in _parts(content, _boundary(content_type)):
        what, _, place = name.partition(".")
        run_id, _, field = place.partition(".")
        if what in ("post", "patch") and run_id:
            _add(runs.setdefault(run_id, {"id": run_id}), field, load_part(value, name), name)
    return [run_span(Entry(run, f"run {run_id}")) for run_id, run in runs.items()]


def load_part(content: bytes, name: str) -> JsonValue:
    try:
        return load_strict(content)
    except RecordError as error:
        raise RecordError(f"{name}: {error.message}", field=name) from None


def _add(run: JsonObject, field: str, value: JsonValue, name: str) -> None:
    """A patch comes after its post and says again what it knows; null there takes nothing back."""
    if field in _FIELDS:
        run.update({field: value})
    elif not field:
        run.update({key: each for key, each in _object(value, name).items() if each is not None})


def _object(value: JsonValue, name: str) -> JsonObject:
    if not isinstance(value, dict):
        raise RecordError(f"{name}: expected an object.", field=name)
    return value


def _boundary(content_type: str) -> bytes:
    found = _BOUNDARY.search(content_type)
    if found is None or not content_type.lower().startswith("multipart/"):
        raise RecordError("The content type is not multipart with a boundary.", field="Content-Type")
    return (found[1] or found[2]).encode("utf-8", errors="replace")


_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]{1,200})"|([^";,\s]{1,200}))', re.IGNORECASE)
_NAME = re.compile(rb';\s*name="([^"]*)"', re.IGNORECASE)


def _parts(content: bytes, boundary: bytes) -> list[tuple[str, bytes]]:
    """Name and content of each part, in order."""
    pieces = (b"\r\n" + content).split(b"\r\n--" + boundary)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise RecordError("The body ends before its last boundary.", field="body")
    return [_part(piece, index) for index, piece in enumerate(pieces[1:-1])]


def _part(piece: bytes, index: int) -> tuple[str, bytes]:
    head, blank, content = piece.partition(b"\r\n\r\n")
    name = _NAME.search(head)
    if not blank or name is None:
        raise RecordError(f"Part {index} of the body has no name.", field=f"part {index}")
    return name[1].decode(errors="replace"), content
