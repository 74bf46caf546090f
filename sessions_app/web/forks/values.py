"""Recorded values as text that a form can hold: whole, or shown in part and not offered for editing."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal

from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.queries.steps import GonePayload

LONGEST = 64 * 1024
"""Bytes of a recorded value that are shown and offered."""

Form = Literal["text", "json", "error"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A recorded value. `text` is None when it was not captured."""

    text: str | None = None
    form: Form = "text"
    size: int = 0
    """Bytes of the whole value."""
    note: str = ""
    """Why it is shown and not offered for editing."""

    @property
    def editable(self) -> str:
        """What editing begins with: the whole value or nothing, never a part of it."""
        return "" if self.text is None or self.note else self.text


NOT_CAPTURED = Value()


def of_text(text: str | None) -> Value:
    """A text that can be given as nothing but text, such as instructions."""
    if text is None:
        return NOT_CAPTURED
    if not _fits_a_form(text):
        return _shown(json.dumps(text), "text", "it holds characters that a form cannot keep, and is shown as JSON")
    return _shown(text, "text")


def of_json(value: JsonValue) -> Value:
    return _shown(spelled(value), "json")


def of_payload(payload: Payload | None) -> Value:
    """A text as it is, where a form can hold it; everything else as JSON."""
    if payload is None:
        return NOT_CAPTURED
    if isinstance(payload, GonePayload):
        return Value(text="", note="the recorded bytes are no longer stored")
    if payload.size > LONGEST or not (payload.is_json or payload.is_text):
        return _part(payload)
    value = value_of(payload)
    return _shown(value, "text") if isinstance(value, str) and _fits_a_form(value) else of_json(value)


def of_error(message: str | None) -> Value:
    return replace(of_text(message or ""), form="error")


def of_message(payload: Payload) -> Value:
    """The text of a message that is one text; else the whole message."""
    found = None if payload.size > LONGEST else text_of_message(value_of(payload))
    return _shown(found, "text") if found is not None and _fits_a_form(found) else of_payload(payload)


def text_of_message(message: JsonValue) -> str | None:
    """Of its only part, or of its only prompt: there a new text goes without doubt."""
    parts = parts_of(message)
    prompts = [part for part in parts if part.get("part_kind") == "user-prompt"]
    part = next((found[0] for found in (parts, prompts) if len(found) == 1), {})
    content = part.get("content")
    return content if isinstance(content, str) else None


def value_of(payload: Payload) -> JsonValue:
    """None for what cannot be read, bytes that are gone among it."""
    try:
        return payload.value
    except (ValueError, RecursionError):
        return None


def spelled(value: JsonValue) -> str:
    """On several lines. Half a surrogate pair keeps its escape: no page could carry it."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text if _has_utf8(text) else json.dumps(value, indent=2)


def parts_of(message: JsonValue) -> list[JsonObject]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _shown(text: str, form: Form, note: str = "") -> Value:
    content = text.encode()
    if len(content) <= LONGEST:
        return Value(text=text, form=form, size=len(content), note=note)
    return Value(text=_cut(content), form=form, size=len(content), note=note or _TOO_LONG)


_TOO_LONG = "too long to be edited here; what you write replaces all of it"


def _part(payload: Payload) -> Value:
    note = _TOO_LONG if payload.is_json or payload.is_text else "no text; what you write replaces all of it"
    return Value(text=_cut(payload.content), form="text" if payload.is_text else "json", size=payload.size, note=note)


def _cut(content: bytes) -> str:
    return content[:LONGEST].decode(errors="replace")


def _fits_a_form(text: str) -> bool:
    """Browsers spell line ends anew, and neither they nor we can send NUL or half a surrogate pair."""
    return "\r" not in text and "\x00" not in text and _has_utf8(text)


def _has_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
