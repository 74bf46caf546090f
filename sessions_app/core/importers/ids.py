"""Ids of traces and spans as OpenTelemetry has them, made of the ids of other products; equal ids give equal ids."""

from __future__ import annotations

import re

from sessions_app.core.payload import sha256_hex

_HEX = re.compile(r"[0-9a-f]+")


def trace_id_of(text: str) -> str:
    """32 hex digits: those of a UUID or of a trace id, else the beginning of the text's SHA-256."""
    return _digits(text, 32) or _hashed(text, 32)


def span_id_of(text: str) -> str:
    """16 hex digits: a span id itself, or the last ones of a UUID.

    The first ones of a UUID (version 7) are a clock that two runs share; the last 62 bits are random in every version
    that products use.
    """
    uuid = _digits(text, 32)
    return _digits(text, 16) or (uuid[16:] if uuid and uuid[16:].strip("0") else _hashed(text, 16))


def _digits(text: str, length: int) -> str | None:
    digits = text.replace("-", "").lower()
    is_id = len(digits) == length and _HEX.fullmatch(digits) and digits.strip("0")
    return digits if is_id else None


def _hashed(text: str, length: int) -> str:
    return sha256_hex(text.encode("utf-8", errors="replace"))[:length]
