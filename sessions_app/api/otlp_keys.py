"""Keys as OTLP exporters send them.

`Authorization: Bearer <key>`, `Authorization: Basic` with the key as password and any user name, or `x-api-key: <key>`:
what an exporter can be told to send differs, and each of these is all that some of them can.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from django.http import HttpRequest

from sessions_app.api.errors import Refused
from sessions_app.models import Project
from sessions_app.services.ingest_log import refused_key_words
from sessions_app.services.keys import recent_key


def sending_project(request: HttpRequest) -> Project:
    """The project of the first valid key; raises `Refused`."""
    sent = list(_keys(request))
    for text in sent:
        key = recent_key(text)
        if key is not None:
            return key.project
    raise Refused(401, "unauthorized", refused_key_words(f"Bearer {sent[0]}" if sent else ""))


def _keys(request: HttpRequest) -> Iterator[str]:
    scheme, _, credentials = request.headers.get("Authorization", "").strip().partition(" ")
    found = {"bearer": credentials, "basic": _password(credentials)}.get(scheme.lower(), "")
    yield from (key.strip() for key in (found, request.headers.get("x-api-key", "")) if key.strip())


def _password(credentials: str) -> str:
    try:
        return base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""
