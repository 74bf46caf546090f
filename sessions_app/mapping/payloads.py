"""Reading and writing payloads by digest.

Those that are new in one call are compressed together, in blocks; a long one stands alone: in its row, or in the blob
folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from zstandard import ZstdError

from sessions_app.core.errors import PayloadMissing
from sessions_app.core.payload import sha256_hex
from sessions_app.mapping.binary_rows import binary_cursor
from sessions_app.payloads.blobs import BlobFolder
from sessions_app.payloads.blocks import BLOCK_BYTES, Place, blocks_of, read_block
from sessions_app.payloads.compression import pack, unpack


def blob_folder() -> BlobFolder:
    return BlobFolder(Path(settings.REPLAY_BLOBS))


# --- writing -----------------------------------------------------------------------------------


class _Row(NamedTuple):
    """Of one payload; `block` is the number of its block among those that are written with it."""

    digest: bytes
    size: int
    stored_size: int
    is_compressed: bool
    data: bytes | None = None
    block: int | None = None
    place: int | None = None


_KNOWN = """
SELECT digest FROM sessions_app_storedpayload WHERE project_id = %(project)s AND digest = ANY(%(wanted)b)
"""
_ADD = """
WITH block AS MATERIALIZED (
    SELECT number, data, nextval(pg_get_serial_sequence('sessions_app_payloadblock', 'id')) AS id
    FROM unnest(%(blocks)b::bytea[]) WITH ORDINALITY AS given(data, number)
), added AS (
    INSERT INTO sessions_app_payloadblock (id, project_id, data) SELECT id, %(project)s, data FROM block
)
INSERT INTO sessions_app_storedpayload
    (project_id, digest, size, stored_size, is_compressed, data, block_id, place)
SELECT %(project)s, row.digest, row.size, row.stored_size, row.is_compressed, row.data, block.id, row.place
FROM unnest(
    %(digest)b::bytea[], %(size)b::int[], %(stored_size)b::int[], %(is_compressed)b::bool[], %(data)b::bytea[],
    %(block)b::int[], %(place)b::int[]
) AS row (digest, size, stored_size, is_compressed, data, block, place)
LEFT JOIN block ON block.number = row.block
ORDER BY row.digest
ON CONFLICT DO NOTHING
"""


def write_many(project_id: int, contents: Mapping[str, bytes]) -> None:
    """Store what is not stored yet; call it inside the transaction that adds the references."""
    add(project_id, missing(project_id, contents))


def missing(project_id: int, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those that are not stored; one query, none for nothing. What is stored stays, so this may be asked beforehand."""
    known = _known(project_id, contents)
    return {digest: content for digest, content in contents.items() if digest not in known}


def add(project_id: int, new: Mapping[str, bytes]) -> None:
    """Store what was missing; call it inside the transaction that adds the references.

    Blobs are complete on disk before their rows are written, so no row ever names a missing blob. Rows are written in
    the order of digests, so that two writers never wait in a circle. Of two that write the same payload at once one
    comes too late: its bytes stay unused in its block.
    """
    if not new:
        return
    most = min(BLOCK_BYTES, settings.REPLAY_BLOB_THRESHOLD_BYTES)
    rows = [_alone(project_id, digest, content) for digest, content in new.items() if len(content) > most]
    blocks = list(blocks_of({digest: content for digest, content in new.items() if len(content) <= most}))
    for number, block in enumerate(blocks, start=1):
        for digest, place in block.places.items():
            rows.append(_in_block(digest, place, number))
    columns = dict(zip(_Row._fields, map(list, zip(*rows, strict=True)), strict=True))
    with binary_cursor() as cursor:
        cursor.execute(_ADD, {"project": project_id, "blocks": [block.data for block in blocks], **columns})


def _known(project_id: int, digests: Iterable[str]) -> set[str]:
    wanted = list(map(bytes.fromhex, digests))
    if not wanted:
        return set()
    with binary_cursor() as cursor:
        cursor.execute(_KNOWN, {"project": project_id, "wanted": wanted})
        return {bytes(digest).hex() for (digest,) in cursor.fetchall()}


def _in_block(digest: str, place: Place, number: int) -> _Row:
    is_compressed = place.stored_size < place.size
    key = bytes.fromhex(digest)
    return _Row(key, place.size, place.stored_size, is_compressed, block=number, place=place.start)


def _alone(project_id: int, digest: str, content: bytes) -> _Row:
    packed = pack(content)
    row = _Row(bytes.fromhex(digest), len(content), len(packed.data), packed.is_compressed)
    if len(packed.data) <= settings.REPLAY_BLOB_THRESHOLD_BYTES:
        return row._replace(data=packed.data)
    blob_folder().write(project_id, digest, packed.data)
    return row


# --- reading -----------------------------------------------------------------------------------

_READ = """
WITH piece AS MATERIALIZED (
    SELECT digest, size, data, is_compressed, block_id, place FROM sessions_app_storedpayload
    WHERE project_id = %(project)s AND digest = ANY(%(wanted)b)
)
SELECT * FROM piece
UNION ALL
SELECT NULL, NULL, data, NULL, id, NULL FROM sessions_app_payloadblock WHERE id IN (SELECT block_id FROM piece)
"""
"""Each block once, however many of the pieces lie in it."""


def read_many(project_id: int, digests: Iterable[str]) -> dict[str, bytes]:
    """The bytes of those that are stored and can be read; one query."""
    wanted = [bytes.fromhex(digest) for digest in digests]
    if not wanted:
        return {}
    with binary_cursor() as cursor:
        cursor.execute(_READ, {"project": project_id, "wanted": wanted})
        rows = cursor.fetchall()
    blocks = {block: _unless_damaged(read_block, data) for digest, _, data, _, block, _ in rows if digest is None}
    pieces = [(bytes(digest).hex(), *rest) for digest, *rest in rows if digest is not None]
    found = {
        digest: _read_alone(project_id, digest, data, is_compressed)
        if block is None
        else _piece(blocks.get(block), place, size)
        for digest, size, data, is_compressed, block, place in pieces
    }
    return {digest: content for digest, content in found.items() if content is not None}


def _piece(block: bytes | None, place: int, size: int) -> bytes | None:
    """None when the block is gone or damaged."""
    return None if block is None else block[place : place + size]


def _read_alone(project_id: int, digest: str, data: bytes | None, is_compressed: bool) -> bytes | None:
    """None when the bytes are gone from the blob folder, or damaged."""
    kept = data if data is not None else blob_folder().read(project_id, digest)
    return None if kept is None else _unless_damaged(partial(unpack, is_compressed=is_compressed), kept)


def _unless_damaged(read: Callable[[bytes], bytes], data: bytes) -> bytes | None:
    try:
        return read(bytes(data))
    except ZstdError:
        return None


def read(project_id: int, digest: str) -> bytes:
    """The exact bytes, checked against their name."""
    content = read_many(project_id, [digest]).get(digest)
    if content is None or sha256_hex(content) != digest:
        raise PayloadMissing(digest)
    return content
