"""What was recorded of steps, in blocks: what one says the next one says again.

    [size, …] 0x00 text text …

A block holds the texts of steps that follow one another, behind the bytes of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from zstandard import ZstdError

from sessions_app.core.errors import StepMissing
from sessions_app.core.payload import compact_json
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.binary_rows import binary_cursor
from sessions_app.models import RunContent, StepBlock
from sessions_app.payloads.blocks import parts_of
from sessions_app.payloads.compression import compress_block, decompress

BLOCK_BYTES = 32 * 1024
"""Of a block before compression: whoever reads one step decompresses all of it."""
_END = b"\0"

# --- writing -----------------------------------------------------------------------------------


def write_details(content: RunContent, steps: Iterable[tuple[int, bytes]]) -> None:
    """Index and text of steps that follow one another; of none of them a text is stored yet."""
    parts = parts_of(steps, BLOCK_BYTES)
    StepBlock.objects.bulk_create(
        StepBlock(content=content, first=part[0][0], data=_packed([text for _, text in part])) for part in parts
    )


def _packed(texts: Sequence[bytes]) -> bytes:
    return compress_block(b"".join([compact_json([len(text) for text in texts]), _END, *texts]))


# --- reading -----------------------------------------------------------------------------------

_BLOCKS = """
SELECT content_id, first, data FROM sessions_app_stepblock JOIN (
    SELECT DISTINCT step.content_id, (
        SELECT max(first) FROM sessions_app_stepblock block
        WHERE block.content_id = step.content_id AND block.first <= step.index
    ) AS first
    FROM unnest(%(contents)b::bigint[], %(indexes)b::int[]) AS step (content_id, index)
) place USING (content_id, first)
"""
"""Each block once, however many of the steps lie in it."""

_Place = tuple[int, int]
"""As `RunContent.place_of` gives it."""


def details(content: RunContent, steps: Iterable[StepSummary]) -> list[bytes]:
    """The text of each; one query. Raises `StepMissing`, also where a block is damaged."""
    return details_at([content.place_of(step.index) for step in steps])


def details_at(places: Sequence[_Place]) -> list[bytes]:
    """The same of steps of several contents."""
    if not places:
        return []
    contents, indexes = map(list, zip(*places, strict=True))
    with binary_cursor() as cursor:
        cursor.execute(_BLOCKS, {"contents": contents, "indexes": indexes})
        blocks = cursor.fetchall()
    found = {
        (content, index): text
        for content, first, data in blocks
        for index, text in enumerate(_unpacked(first, data), first)
    }
    for place in places:
        if place not in found:
            raise StepMissing(place[1])
    return [found[place] for place in places]


def _unpacked(first: int, data: bytes) -> list[bytes]:
    try:
        sizes, _, texts = decompress(bytes(data)).partition(_END)
    except ZstdError:
        raise StepMissing(first) from None
    return [texts[start:end] for start, end in pairwise(accumulate(json.loads(sizes), initial=0))]
