"""One recorded exchange of a cassette: `{"request": {}, "response": {}}`."""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from datetime import datetime

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.fields import Fields
from sessions_app.core.json_text import load_strict
from sessions_app.core.payload import BINARY, JSON, TEXT, JsonObject, JsonValue, Payload
from sessions_app.core.redaction.field_names import FIELD_RULE, fold_name, is_secret_field
from sessions_app.core.run import HttpExchange

SOURCE = "cassette"
_SECRET_WORDS = frozenset({"token", "key", "secret", "signature", "credential", "auth", "password"})


class Interaction:
    """A request and its response."""

    def __init__(self, fields: Fields) -> None:
        request = fields.required("request", fields.child)
        response = fields.required("response", fields.child)
        status = response.child("status")
        self.message = status.text("message") if status else None
        self.http = HttpExchange(
            method=request.required("method", request.name),
            url=request.required("uri", request.text),
            request_headers=_headers(request),
            request_body=_body(request),
            status=status.integer("code") if status else None,
            response_headers=_headers(response),
            response_body=_body(response),
            extra=_extra({**request.rest(), **response.rest()}),
        )
        self.recorded_at: datetime | None = fields.time("recorded_at")
        self.extra = _extra(fields.rest())

    @property
    def attachment(self) -> HttpExchange:
        """The exchange as it stands on a step of somebody else's."""
        at = {"started_at": self.recorded_at.isoformat()} if self.recorded_at else {}
        return replace(self.http, extra={**self.http.extra, **self.extra, **at})

    @property
    def has_failed(self) -> bool:
        return self.http.status is not None and self.http.status >= 400


def _extra(rest: JsonObject) -> JsonObject:
    return {f"{SOURCE}.{name}": value for name, value in rest.items()}


def _headers(fields: Fields) -> tuple[tuple[str, str], ...]:
    """Each name has one value or a list of them. Those that hold secrets by their name are left out."""
    pairs = []
    for name, values in (fields.object("headers") or {}).items():
        for value in values if isinstance(values, list) else [values]:
            if not isinstance(value, str):
                raise fields.error(f"headers.{name[:80]}", "must be a string or a list of strings")
            pairs.append((name, value))
    return tuple(pair for pair in pairs if not _is_secret(pair[0]))


def _is_secret(name: str) -> bool:
    folded = fold_name(name)
    return is_secret_field(FIELD_RULE, folded) or not _SECRET_WORDS.isdisjoint(folded.split("_"))


def _body(fields: Fields) -> Payload | None:
    """A text, or an object around a text or around bytes in base64."""
    value = fields.value("body")
    said = value.get("string") if isinstance(value, dict) else value
    for held in (value, said):  # cassettes in YAML have bytes where others have the text
        if isinstance(held, dict) and held.get("base64_string") is not None:
            return _payload(_from_base64(held["base64_string"], fields))
    if said is not None and not isinstance(said, str):
        raise fields.error("body", "must be a string, or an object with 'string' or 'base64_string'")
    return None if said is None else _payload(said.encode())


def _from_base64(text: JsonValue, fields: Fields) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise fields.error("body.base64_string", "is not base64") from None


def _payload(content: bytes) -> Payload:
    """JSON where it is an object or a list that can be kept as it is spelled, else text, else bytes."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return Payload(content=content, media_type=BINARY)
    return Payload(content=content, media_type=JSON if is_json(content) else TEXT)


def is_json(content: bytes) -> bool:
    """Whether it is an object or a list that our strict reader takes."""
    if not content.lstrip().startswith((b"{", b"[")):
        return False
    try:
        load_strict(content)
    except RecordError:
        return False
    return True
