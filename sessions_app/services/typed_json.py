"""What people type into orders and answers: JSON that can be stored, without the secrets that it held."""

from __future__ import annotations

import json

from sessions_app.core.errors import RecordError
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.payload import JsonObject, JsonValue, compact_json
from sessions_app.models import Project
from sessions_app.services.redaction import redactor_of

_LIMITS = Limits(max_bytes=4 * 1024 * 1024)


def without_secrets(project: Project, typed: JsonObject) -> JsonObject:
    """Raises `ForkError` naming the member that cannot be stored, and `RedactionFailed`."""
    for name, value in typed.items():
        _check(name, value)
    redacted: JsonObject = json.loads(redactor_of(project).redact(compact_json(typed)).content)
    return redacted


def _check(name: str, value: JsonValue) -> None:
    """It may come from a parser that is not strict: with NaN, half a surrogate pair or NUL in it."""
    try:
        text = compact_json({name: value})
        load_strict(text, _LIMITS)
    except RecordError as error:
        raise ForkError(f"{name} cannot be stored: {error.message}", field=name) from None
    except (ValueError, RecursionError, TypeError):
        raise ForkError(f"{name} cannot be written as JSON.", field=name) from None
    if rb"\u0000" in text and holds_nul(value):
        raise ForkError(f"{name} holds a NUL character, which cannot be stored.", field=name)


def holds_nul(value: JsonValue) -> bool:
    """Whether a text in it holds NUL, which PostgreSQL's JSON cannot hold."""
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(holds_nul(key) or holds_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(map(holds_nul, value))
