"""Recorded bytes as files: a browser keeps them and never shows or runs them."""

from __future__ import annotations

import re
from typing import TypeVar

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from sessions_app.core.base64_data import PICTURES, media_type_of

LARGEST_PICTURE = 16 * 1024 * 1024
_Response = TypeVar("_Response", bound=HttpResponseBase)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


def as_file(response: _Response, disposition: str) -> _Response:
    """With the headers that keep a browser from guessing what it is and from running it."""
    response.headers["Content-Disposition"] = disposition
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


def attachment(content: bytes, name: str) -> HttpResponse:
    """Whatever the bytes say they are, they are sent as bytes."""
    response = HttpResponse(content, content_type="application/octet-stream")
    return as_file(response, f'attachment; filename="{file_name(name)}"')


def picture(content: bytes) -> HttpResponse | None:
    """An image that a browser draws; None for bytes that are none, whatever they were said to be."""
    media_type = media_type_of(content)
    if media_type not in PICTURES or len(content) > LARGEST_PICTURE:
        return None
    response = HttpResponse(content, content_type=media_type)
    return as_file(response, "inline")


def shown_file(text: str, media_type: str, name: str) -> HttpResponse:
    """A report in a browser: recorded text in it is text, and never markup."""
    response = HttpResponse(text, content_type=media_type)
    return as_file(response, f'inline; filename="{name}"')


def file_name(name: str) -> str:
    """A name that every system takes, made from an id that may hold anything."""
    return _UNSAFE.sub("_", name).strip("._")[:120] or "recorded"
