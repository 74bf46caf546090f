"""The texts and files of an item of the OpenAI Agents SDK, or of a message's part, so that both can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.payload import JsonObject, JsonValue


def pieces_of(content: JsonValue) -> list[JsonValue]:
    return content if isinstance(content, list) else [content]


def words_of(content: JsonValue) -> Iterator[str]:
    """The texts and files of an item, or of a message's part."""
    for piece in pieces_of(content):
        said = _said_by(piece) if isinstance(piece, dict) else piece
        if isinstance(said, str):
            yield said


def _said_by(piece: JsonObject) -> JsonValue:
    """A text, or a file as a link: the recorder takes those apart that hold the file itself."""
    audio = piece.get("input_audio")
    if isinstance(audio, dict):
        return _link(f"audio/{audio.get('format')}", audio.get("data"))
    if piece.get("kind") == "binary":
        return _link(piece.get("media_type"), piece.get("data"))
    name = next((name for name in (*_TEXTS, *_LINKS) if isinstance(piece.get(name), str)), None)
    if name is None:
        return None
    return piece[name] if name in _TEXTS else _PARAMETERS.sub(r"\1;base64,", piece[name])


_TEXTS = ("text", "refusal")
_LINKS = ("image_url", "file_url", "file_data", "file_id", "url")
_PARAMETERS = re.compile(r"^(data:[^;,]+)[^,]*;base64,")


def _link(media_type: JsonValue, data: JsonValue) -> str:
    return f"data:{media_type};base64,{data}"
