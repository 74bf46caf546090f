"""Base64 in recorded texts: found, measured, and named, so that a page can fold it."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

FOLDED_FROM = 2048
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}", re.ASCII)
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
)


PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What a browser draws and never runs: SVG, which may hold scripts, is none of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Folded:
    """Base64 that stands in a text."""

    media_type: str
    size: int
    """Bytes once decoded."""

    @property
    def is_picture(self) -> bool:
        return self.media_type in PICTURES


def folded(text: str, *, at_least: int = FOLDED_FROM) -> Folded | None:
    """What the text holds when all of it is base64 (or a data URL of it) of some length, else None."""
    if len(text) < at_least:
        return None
    prefix = _DATA_URL.match(text)
    body = text[prefix.end() :] if prefix else text
    if not _BASE64.fullmatch(body) or (not prefix and len(set(body[:256])) < 12):
        return None
    declared = prefix.group(1) if prefix else None
    return Folded(media_type=declared or _sniff(body), size=len(body.rstrip("=")) * 3 // 4)


def decoded(text: str) -> bytes | None:
    """The bytes, or None when the text is no base64 after all."""
    prefix = _DATA_URL.match(text)
    body = (text[prefix.end() :] if prefix else text).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def without_base64(text: str) -> str:
    """The text with each long stretch of base64 in it named: `base64 · 48 KiB · image/png`."""
    return _STRETCH.sub(lambda found: _named(found.group()), text)


_STRETCH = re.compile(r"(?:data:[\w.+-]+/[\w.+-]+;base64,)?[A-Za-z0-9+/_-]{200,}={0,2}", re.ASCII)


def _named(text: str) -> str:
    found = folded(text, at_least=0)
    is_mixed = any(c.islower() for c in text) and any(c.isupper() for c in text) and any(c.isdigit() for c in text)
    return f"base64 · {size_in_words(found.size)} · {found.media_type}" if found and is_mixed else text


def size_in_words(size: int) -> str:
    """`900 B`, `48 KiB`, `5.1 MiB`."""
    if size < 1024:
        return f"{size} B"
    if size < 1024 * 1024:
        return f"{round(size / 1024)} KiB"
    return f"{size / 1024 / 1024:.1f} MiB"


def _sniff(body: str) -> str:
    return media_type_of(decoded(body[:64]) or b"")


def media_type_of(head: bytes) -> str:
    """By the first bytes, whatever anybody says of them."""
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "application/octet-stream")
    return next((name for magic, name in _MAGIC if head.startswith(magic)), "application/octet-stream")
