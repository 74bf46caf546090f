"""The pieces of a content, in blocks of those that follow one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from zstandard import ZstdError

from sessions_app.core.errors import StepMissing
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.binary_rows import binary_cursor
from sessions_app.models import ContentBlock, RunContent
from sessions_app.models.contents import find_parts
from sessions_app.payloads.blocks import pack_block, parts_of, unpack_block

BLOCK_BYTES = 512 * 1024
"""Of a block before compression: whoever reads one piece decompresses all of it."""

# --- writing -----------------------------------------------------------------------------------


def write_pieces(content: RunContent, pieces: Sequence[bytes]) -> None:
    parts = parts_of(pieces, BLOCK_BYTES)
    firsts = accumulate(map(len, parts), initial=content.first_piece)
    ContentBlock.objects.bulk_create(
        ContentBlock(content=content, first=first, data=pack_block(part))
        for first, part in zip(firsts, parts, strict=False)
    )


# --- reading -----------------------------------------------------------------------------------

_BLOCKS = """
SELECT content_id, first, data FROM sessions_app_contentblock JOIN (
    SELECT DISTINCT wanted.content_id, (
        SELECT max(first) FROM sessions_app_contentblock block
        WHERE block.content_id = wanted.content_id AND block.first <= wanted.piece
    ) AS first
    FROM unnest(%(contents)b::bigint[], %(pieces)b::int[]) AS wanted (content_id, piece)
) place USING (content_id, first)
"""
"""Each block once, however many of the pieces lie in it."""


def open_pieces(wanted: Iterable[tuple[RunContent, int]]) -> None:
    """Read these, with what lies beside them, into `RunContent.opened`; a query, another where contents have bases.

    Those that are gone or damaged are not among them.
    """
    lacking = [(content, piece) for content, piece in wanted if piece not in content.opened]
    if not lacking:
        return
    contents = list({id(content): content for content, _ in lacking}.values())
    find_parts(contents)
    blocks = _read_blocks([(content.holder_of(piece), piece) for content, piece in lacking])
    for content in contents:
        for part in content.parts:
            for first, pieces in blocks.get(part.content, ()):
                content.opened.update(enumerate(pieces, first))


_Block = tuple[int, list[bytes]]
"""The number of its first piece, and all pieces."""


def _read_blocks(places: Sequence[tuple[int, int]]) -> dict[int, list[_Block]]:
    """By content; `places` are contents and numbers of pieces."""
    contents, pieces = map(list, zip(*places, strict=True))
    with binary_cursor() as cursor:
        cursor.execute(_BLOCKS, {"contents": contents, "pieces": pieces})
        rows = cursor.fetchall()
    blocks: dict[int, list[_Block]] = {}
    for content, first, data in rows:
        blocks.setdefault(content, []).append((first, _unpacked(data)))
    return blocks


def _unpacked(data: bytes) -> list[bytes]:
    """None of them where the block is damaged."""
    try:
        return unpack_block(bytes(data))
    except ZstdError:
        return []


def read_pieces(content: RunContent, pieces: Iterable[int]) -> dict[int, bytes]:
    """Those that can be read, by number."""
    wanted = set(pieces)
    open_pieces((content, piece) for piece in wanted)
    return {piece: content.opened[piece] for piece in wanted if piece in content.opened}


def step_texts(content: RunContent, steps: Sequence[StepSummary]) -> list[bytes]:
    """What was recorded of each, payloads by reference. Raises `StepMissing`, also where a block is damaged."""
    found = read_pieces(content, (step.text for step in steps))
    for step in steps:
        if step.text not in found:
            raise StepMissing(step.index)
    return [found[step.text] for step in steps]
