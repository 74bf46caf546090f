"""The stream of a request's body, and what is done with one that nobody wants."""

from __future__ import annotations

from contextlib import suppress
from typing import IO, cast

from django.conf import settings
from django.http import HttpRequest

_DRAINED = 64 * 1024 * 1024
"""Bytes of a refused body that are read and thrown away."""


def discard_body(request: HttpRequest) -> None:
    """Read what was refused unseen, if it is of an allowed size: a sender that is cut off never sees the answer, and
    what is left unread ends the connection under the next request."""
    with suppress(OSError):
        has_length = bool(request.headers.get("Content-Length"))
        drain(stream_of(request, has_length=has_length), settings.REPLAY_MAX_BODY_BYTES)


def drain(stream: IO[bytes], left: int = _DRAINED) -> None:
    """Many clients read the answer only when they have sent everything; bounded, and nothing is kept."""
    while left > 0 and (chunk := stream.read(min(left, 64 * 1024))):
        left -= len(chunk)


def stream_of(request: HttpRequest, *, has_length: bool) -> IO[bytes]:
    """Django takes a body without a length for an empty one; chunked senders give none."""
    if has_length or request.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return cast(IO[bytes], request)
    return cast(IO[bytes], request.META["wsgi.input"])
