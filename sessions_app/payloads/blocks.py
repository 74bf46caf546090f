"""Pieces that came together, compressed together: what one says the next one says again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from sessions_app.payloads.compression import compress_block, decompress

_Name = TypeVar("_Name")

BLOCK_BYTES = 128 * 1024
"""Of a block before compression: whoever reads one piece of it decompresses all of it."""
_MOST = 100 * BLOCK_BYTES
"""A changed byte may tell of terabytes."""


class Place(NamedTuple):
    """Where a piece lies in its block."""

    start: int
    size: int
    stored_size: int
    """Its share of what the block takes; the shares of all pieces are the whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Pieces as they are stored, in the order in which they came: similar ones are near."""

    data: bytes
    places: dict[str, Place]
    """By digest."""


def blocks_of(contents: Mapping[str, bytes]) -> Iterator[Block]:
    return (_block(dict(part)) for part in parts_of(contents.items(), BLOCK_BYTES))


def parts_of(named: Iterable[tuple[_Name, bytes]], most: int) -> Iterator[list[tuple[_Name, bytes]]]:
    """Pieces that follow one another, `most` bytes together unless one alone is longer."""
    part: list[tuple[_Name, bytes]] = []
    size = 0
    for name, content in named:
        if part and size + len(content) > most:
            yield part
            part, size = [], 0
        part.append((name, content))
        size += len(content)
    if part:
        yield part


def _block(pieces: Mapping[str, bytes]) -> Block:
    raw = b"".join(pieces.values())
    data = compress_block(raw)
    places, start = {}, 0
    for digest, content in pieces.items():
        end = start + len(content)
        share = end * len(data) // len(raw) - start * len(data) // len(raw) if raw else 0
        places[digest] = Place(start, len(content), share)
        start = end
    return Block(data=data, places=places)


def read_block(data: bytes) -> bytes:
    """All pieces one after the other. Raises `ZstdError` when they are not what was written."""
    return decompress(data, at_most=_MOST)
