"""zstd at level 3, and only where it saves bytes."""

from __future__ import annotations

from dataclasses import dataclass

import zstandard

_LEVEL = 3
_WORTH_TRYING = 64
"""Shorter texts do not get smaller by a zstd frame."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """Bytes as they are stored."""

    data: bytes
    is_compressed: bool


def pack(content: bytes) -> Packed:
    if len(content) >= _WORTH_TRYING:
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
        if len(packed) < len(content):
            return Packed(data=packed, is_compressed=True)
    return Packed(data=content, is_compressed=False)


def unpack(data: bytes, *, is_compressed: bool) -> bytes:
    return zstandard.ZstdDecompressor().decompress(data) if is_compressed else data
