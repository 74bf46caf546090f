"""Cursors of lists: text that whoever reads on sends back as it is."""

from __future__ import annotations

import base64
import binascii

from sessions_app.core.errors import QueryError


def spelled_cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def text_of_cursor(cursor: str) -> str:
    """Raises `ValueError`."""
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except binascii.Error as error:
        raise ValueError(cursor) from error


def bad_cursor(cursor: str) -> QueryError:
    return QueryError("The cursor is not one that this server gave.", part=cursor[:200])
