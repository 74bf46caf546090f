"""What one exported span says. Wrong types are a `RecordError`: the span is not as we wrote it.

A text that is a JSON list may arrive as that list: the store takes long ones apart.
"""

from __future__ import annotations

import json

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.fields import as_object
from sessions_app.core.json_text import load_strict
from sessions_app.core.otlp_export import names
from sessions_app.core.otlp_export.attributes import value_of
from sessions_app.core.payload import JSON, JsonValue, compact_json
from sessions_app.core.spans.span import Span


class Said:
    """The attributes of a span."""

    def __init__(self, span: Span) -> None:
        self.attributes = span.attributes
        self._media_types = self.json(names.MEDIA_TYPES) or {}
        if not isinstance(self._media_types, dict):
            raise _unlike(names.MEDIA_TYPES)

    def text(self, name: str) -> str | None:
        value = self.attributes.get(name)
        if value is not None and not isinstance(value, str):
            raise _unlike(name)
        return value

    def count(self, name: str) -> int | None:
        value = self.attributes.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise _unlike(name)
        return value

    def first(self, name: str) -> JsonValue:
        value = self.attributes.get(name)
        if value is not None and (not isinstance(value, list) or len(value) != 1):
            raise _unlike(name)
        return None if value is None else value[0]

    def facts(self, name: str) -> dict[str, bytes]:
        """JSON text by field."""
        text = self.text(name)
        if text is None:
            raise _unlike(name)
        content = text.encode()
        load_strict(content)
        return as_object(content, name)

    def media_type(self, field: str) -> str | None:
        value = self._media_types.get(field)
        return value if isinstance(value, str) else None

    def value(self, field: str, name: str) -> bytes | None:
        """A value of the record from the attribute that holds its text."""
        media_type = self.media_type(field)
        return None if media_type is None else _value(self._text_of(name, media_type), media_type)

    def message(self, field: str, name: str) -> bytes | None:
        """The same from a conversation of one text."""
        media_type = self.media_type(field)
        return None if media_type is None else _value(_only_text(self.json(name)), media_type)

    def instructions(self) -> str | None:
        return _only_content(self.json("gen_ai.system_instructions"))

    def json(self, name: str) -> JsonValue:
        """The value that an attribute holds as JSON text; None when it is not there."""
        value = self.attributes.get(name)
        if isinstance(value, list):
            return value
        text = self.text(name)
        try:
            return None if text is None else json.loads(text)
        except (ValueError, RecursionError):
            raise _unlike(name) from None

    def _text_of(self, name: str, media_type: str) -> str | None:
        value = self.attributes.get(name)
        if isinstance(value, list) and media_type == JSON:
            return compact_json(value).decode()
        return self.text(name)


def _value(text: str | None, media_type: str) -> bytes | None:
    return None if text is None else value_of(text, media_type)


def _only_text(messages: JsonValue) -> str | None:
    if messages is None:
        return None
    message = messages[0] if isinstance(messages, list) and len(messages) == 1 else None
    if not isinstance(message, dict):
        raise _unlike("gen_ai.input.messages")
    return _only_content(message.get("parts"))


def _only_content(parts: JsonValue) -> str | None:
    if parts is None:
        return None
    part = parts[0] if isinstance(parts, list) and len(parts) == 1 else None
    content = part.get("content") if isinstance(part, dict) else None
    if not isinstance(content, str):
        raise _unlike("parts")
    return content


def _unlike(name: str) -> RecordError:
    return RecordError(f"{name[:80]} is not as an export of ours has it.", field=name[:80])
