"""Pieces that follow one another, compressed together: what one says the next one says again.

[size, …] 0x00 piece piece …
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate, pairwise

from sessions_app.core.payload import compact_json
from sessions_app.payloads.compression import compress_block, decompress

_END = b"\0"


def pack_block(pieces: Sequence[bytes]) -> bytes:
    return compress_block(b"".join([compact_json([len(piece) for piece in pieces]), _END, *pieces]))


def unpack_block(data: bytes) -> list[bytes]:
    """Raises `ZstdError` when they are not what was written."""
    sizes, _, pieces = decompress(data).partition(_END)
    return [pieces[start:end] for start, end in pairwise(accumulate(json.loads(sizes), initial=0))]


def parts_of(pieces: Sequence[bytes], most: int) -> list[Sequence[bytes]]:
    """Those that follow one another, `most` bytes together unless one alone is longer."""
    parts, first, size = [], 0, 0
    for at, piece in enumerate(pieces):
        if at > first and size + len(piece) > most:
            parts.append(pieces[first:at])
            first, size = at, 0
        size += len(piece)
    return [*parts, pieces[first:]] if pieces else []
