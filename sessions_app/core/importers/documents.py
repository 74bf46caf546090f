"""Exported files: one JSON document, or one JSON value a line (JSONL)."""

from __future__ import annotations

from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.payload import JsonValue


def load_document(content: bytes, limits: Limits = Limits()) -> JsonValue:
    """The value, or the list of the lines' values; raises `RecordError` with the place in words."""
    try:
        return load_strict(content, limits)
    except RecordTooLarge:
        raise
    except RecordError as error:
        return _lines(content, limits, error)


def _lines(content: bytes, limits: Limits, error: RecordError) -> list[JsonValue]:
    lines = [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
    if len(lines) < 2 or len(lines) > limits.max_values:
        raise error
    values: list[JsonValue] = []
    for number, line in lines:
        try:
            values.append(load_strict(line, limits))
        except RecordError as wrong:
            # What fails at once is no JSONL: then the document's own error says more.
            raise RecordError(f"Line {number}: {wrong.message}", field=wrong.field) if values else error from None
    return values
