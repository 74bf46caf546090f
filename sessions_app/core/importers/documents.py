"""Files as they come: one JSON document, JSON values one after the other (JSONL, a console exporter), or YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.formats.not_recordings import refusal_of
from sessions_app.core.formats.python_text import read_python_text
from sessions_app.core.importers.yaml_text import is_yaml_cassette, yaml_as_json
from sessions_app.core.json_text import NOT_JSON, Limits, load_strict
from sessions_app.core.payload import JsonValue

_SPACE = " \t\r\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """JSON text, and the value in it."""

    content: bytes
    value: JsonValue


def read_document(content: bytes, limits: Limits = Limits()) -> Document:
    """The document as JSON; several values become one list. Raises `RecordError` with the place in words."""
    if is_yaml_cassette(content):
        content = yaml_as_json(content, limits)
    try:
        return Document(content=content, value=load_strict(content, limits))
    except RecordTooLarge:
        raise
    except RecordError as error:
        return _of_pieces(content, limits, error)


def _of_pieces(content: bytes, limits: Limits, error: RecordError) -> Document:
    pieces: list[bytes] = []
    values: list[JsonValue] = []
    for line, piece in _pieces(content):
        if len(pieces) == limits.max_values:
            raise RecordTooLarge(f"The document holds more than {limits.max_values} values.")
        try:
            values.append(load_strict(piece, limits))
        except RecordError as wrong:
            # Where the first piece is no JSON, the document's own error says more.
            said = RecordError(f"Line {line}: {wrong.message}", field=wrong.field)
            raise said if values else _what_else(content, error) or error from None
        pieces.append(piece)
    if len(pieces) < 2:
        raise _what_else(content, error) or error
    return Document(content=b"[" + b",".join(pieces) + b"]", value=values)


def _pieces(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The JSON values that stand one after the other, each with the line that it begins in; what is none goes to the
    end of its line."""
    text = content.decode("utf-8", errors="replace")
    decoder = json.JSONDecoder()
    at, line = 0, 1
    while True:
        start = _past_space(text, at)
        line += text.count("\n", at, start)
        if start == len(text):
            return
        at = _end_of_value(decoder, text, start)
        yield line, text[start:at].encode("utf-8", errors="replace")
        line += text.count("\n", start, at)


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _end_of_value(decoder: json.JSONDecoder, text: str, start: int) -> int:
    try:
        return decoder.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        end = text.find("\n", start)
        return len(text) if end == -1 else end


_REPORT = b"Bug Reproduction Report"


def _what_else(content: bytes, error: RecordError) -> RecordError | None:
    """What the document is in place of JSON, and what to send; None for JSON that is refused for what is in it."""
    if content.lstrip().startswith(_REPORT):
        return RecordError("This is a report on a run. Send the session file that the report was made of.")
    if content.startswith(b"\x1f\x8b"):
        return RecordError("The file is packed with gzip. Unpack it, or send it with Content-Encoding: gzip.")
    printed = _of_printed(content) if error.message.startswith(NOT_JSON) else None
    return None if printed is None else RecordError(printed)


_SIGNS_OF_JSON = (b"{", b"[", b'"')
_PRINTED = (
    "This is printed text, not JSON. Send what it was printed of: the messages, the session, the list of calls "
    "or the spans, as JSON."
)


_LABEL = re.compile(r"(?:^|\n)[A-Z][a-z]+(?: [a-z]+)?: (?=[\[{])")
"""What a person's own `print` says before a value: `Tool calls: [...]`."""


def _of_printed(content: bytes) -> str | None:
    """What to send in place of printed text; None for what was to be JSON and is broken."""
    text = content.decode("utf-8", errors="replace")
    value = read_python_text(_LABEL.split(text)[-1])
    if value is None:
        return None if content.lstrip().startswith(_SIGNS_OF_JSON) else _PRINTED
    return (
        refusal_of(value) or "This is what Python prints for a value, not JSON. Write it with json.dump and send that."
    )
