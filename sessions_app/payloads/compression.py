"""zstd with dictionaries: most of what we store is short and says what rows before it said.

The number of its dictionary stands in each frame. A better one gets the next number (benchmarks/train_dictionary.py);
those before it stay, for what was written with them. Frames without a number were written without a dictionary.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import zstandard

_ROW_LEVEL = 3
"""Of short texts; higher ones make them no smaller."""
_BLOCK_LEVEL = 6
"""A third of a block goes by it where many frameworks speak; it costs a tenth of a millisecond more."""
RECORDED = 1
"""The dictionary for what was recorded."""
KITS = 2
"""The dictionary for replay kits: they are full of our own sentences, and recordings are not."""
_WORTH_TRYING = 64
"""Shorter texts do not get smaller by a zstd frame."""
_OPENING = b"{"
"""Of JSON text that is stored as it is; no frame begins with it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """Bytes as they are stored."""

    data: bytes
    is_compressed: bool


def pack(content: bytes, dictionary: int = RECORDED) -> Packed:
    if len(content) >= _WORTH_TRYING:
        packed = _tools.of_rows(dictionary).compress(content)
        if len(packed) < len(content):
            return Packed(data=packed, is_compressed=True)
    return Packed(data=content, is_compressed=False)


def unpack(data: bytes, *, is_compressed: bool) -> bytes:
    return decompress(data) if is_compressed else data


def pack_object(text: bytes, dictionary: int = RECORDED) -> bytes:
    """The text of a JSON object, in a form that tells by itself whether it is compressed."""
    return pack(text, dictionary).data


def unpack_object(data: bytes) -> bytes:
    return unpack(data, is_compressed=not data.startswith(_OPENING))


# --- zstd --------------------------------------------------------------------------------------


def dictionary_file(number: int) -> Path:
    return Path(__file__).parent / f"dictionary_{number}.zstd"


@cache
def _dictionary(number: int) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(dictionary_file(number).read_bytes())


@cache
def _prepared_dictionary(number: int, level: int) -> zstandard.ZstdCompressionDict:
    found = zstandard.ZstdCompressionDict(dictionary_file(number).read_bytes())
    found.precompute_compress(level=level)
    return found


class _Tools(threading.local):
    """Making one costs more than its use, and each serves one thread at a time."""

    def of_rows(self, number: int) -> zstandard.ZstdCompressor:
        if number not in self.compressors:
            words = _prepared_dictionary(number, _ROW_LEVEL)
            self.compressors[number] = zstandard.ZstdCompressor(level=_ROW_LEVEL, dict_data=words)
        return self.compressors[number]

    @cached_property
    def compressors(self) -> dict[int, zstandard.ZstdCompressor]:
        return {}

    @cached_property
    def of_blocks(self) -> zstandard.ZstdCompressor:
        words = _prepared_dictionary(RECORDED, _BLOCK_LEVEL)
        return zstandard.ZstdCompressor(level=_BLOCK_LEVEL, dict_data=words, write_checksum=True)

    @cached_property
    def readers(self) -> dict[int, zstandard.ZstdDecompressor]:
        return {}

    def reader(self, number: int) -> zstandard.ZstdDecompressor:
        if number not in self.readers:
            if number and not dictionary_file(number).exists():
                raise zstandard.ZstdError(f"there is no dictionary {number}")
            words = _dictionary(number) if number else None
            self.readers[number] = zstandard.ZstdDecompressor(dict_data=words)
        return self.readers[number]


_tools = _Tools()


def compress_block(content: bytes) -> bytes:
    """With a checksum: also what no digest speaks for is known to be whole."""
    return _tools.of_blocks.compress(content)


def decompress(frame: bytes, *, at_most: int | None = None) -> bytes:
    """Raises `ZstdError`, also for a frame that says it holds more than `at_most`."""
    facts = zstandard.get_frame_parameters(frame)
    if at_most is not None and facts.content_size > at_most:
        raise zstandard.ZstdError("too much was announced")
    return _tools.reader(facts.dict_id).decompress(frame, allow_extra_data=False)
