"""Payloads that are stored apart, by digest: long ones, documents as received, and what spans of many traces share.

A long one lies in its row, or in the folder or bucket of blobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from zstandard import ZstdError

from sessions_app.mapping.binary_rows import binary_cursor
from sessions_app.payloads.blob_bucket import BlobBucket
from sessions_app.payloads.blobs import BlobFolder
from sessions_app.payloads.compression import pack, unpack


def blob_store() -> BlobFolder | BlobBucket:
    return _blob_store(settings.REPLAY_BLOBS)


@lru_cache(maxsize=4)
def _blob_store(place: str) -> BlobFolder | BlobBucket:
    """A bucket keeps its connections."""
    return BlobBucket(place) if "://" in place else BlobFolder(Path(place))


# --- writing -----------------------------------------------------------------------------------


class _Row(NamedTuple):
    """Of one payload."""

    digest: bytes
    size: int
    stored_size: int
    is_compressed: bool
    data: bytes | None


_KNOWN = """
SELECT digest FROM sessions_app_storedpayload
WHERE project_id = %(project)s AND digest = ANY(%(wanted)b) AND NOT is_doomed
"""
_ADD = """
INSERT INTO sessions_app_storedpayload (project_id, digest, size, stored_size, is_compressed, data, is_doomed)
SELECT %(project)s, row.*, false FROM unnest(
    %(digest)b::bytea[], %(size)b::int[], %(stored_size)b::int[], %(is_compressed)b::bool[], %(data)b::bytea[]
) AS row
ORDER BY 2
ON CONFLICT (project_id, digest) DO UPDATE SET is_doomed = false WHERE sessions_app_storedpayload.is_doomed
"""
"""Nothing that is stored goes by itself. What was doomed is needed again."""


def write_many(project_id: int, contents: Mapping[str, bytes]) -> None:
    """Store what is not stored yet; call it inside the transaction that adds the references."""
    add(project_id, missing(project_id, contents))


def missing(project_id: int, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those that are not stored to stay; one query, none for nothing. So this may be asked beforehand."""
    known = _known(project_id, contents)
    return {digest: content for digest, content in contents.items() if digest not in known}


def add(project_id: int, new: Mapping[str, bytes]) -> None:
    """Store what was missing; call it inside the transaction that adds the references.

    Blobs are complete on disk before their rows are written, so no row ever names a missing blob. Rows are written in
    the order of digests, so that two writers never wait in a circle.
    """
    if not new:
        return
    rows = [_row(project_id, digest, content) for digest, content in new.items()]
    columns = dict(zip(_Row._fields, map(list, zip(*rows, strict=True)), strict=True))
    with binary_cursor() as cursor:
        cursor.execute(_ADD, {"project": project_id, **columns})


def _known(project_id: int, digests: Iterable[str]) -> set[str]:
    wanted = list(map(bytes.fromhex, digests))
    if not wanted:
        return set()
    with binary_cursor() as cursor:
        cursor.execute(_KNOWN, {"project": project_id, "wanted": wanted})
        return {bytes(digest).hex() for (digest,) in cursor.fetchall()}


def _row(project_id: int, digest: str, content: bytes) -> _Row:
    packed = pack(content)
    row = _Row(bytes.fromhex(digest), len(content), len(packed.data), packed.is_compressed, packed.data)
    if len(packed.data) <= settings.REPLAY_BLOB_THRESHOLD_BYTES:
        return row
    blob_store().write(project_id, digest, packed.data)
    return row._replace(data=None)


# --- reading -----------------------------------------------------------------------------------

_READ = """
SELECT digest, data, is_compressed FROM sessions_app_storedpayload
WHERE project_id = %(project)s AND digest = ANY(%(wanted)b)
"""


def read_many(project_id: int, digests: Iterable[str]) -> dict[str, bytes]:
    """The bytes of those that are stored and can be read; one query, none for nothing."""
    wanted = [bytes.fromhex(digest) for digest in digests]
    if not wanted:
        return {}
    with binary_cursor() as cursor:
        cursor.execute(_READ, {"project": project_id, "wanted": wanted})
        rows = [(bytes(digest).hex(), *rest) for digest, *rest in cursor.fetchall()]
    found = {digest: _content(project_id, digest, data, is_packed) for digest, data, is_packed in rows}
    return {digest: content for digest, content in found.items() if content is not None}


def _content(project_id: int, digest: str, data: bytes | None, is_compressed: bool) -> bytes | None:
    """None when the bytes are gone from the blob folder, or damaged."""
    kept = data if data is not None else blob_store().read(project_id, digest)
    try:
        return None if kept is None else unpack(bytes(kept), is_compressed=is_compressed)
    except ZstdError:
        return None


# --- what may go -------------------------------------------------------------------------------

_MARK = """
UPDATE sessions_app_storedpayload SET is_doomed = %(is_doomed)s
WHERE project_id = %(project)s AND digest = ANY(%(wanted)b)
"""


def doom(project_id: int, digests: Iterable[str]) -> None:
    """What referred to them is being replaced: they go once it is seen that nothing else does. Who writes one of them
    again keeps it."""
    _mark(project_id, digests, is_doomed=True)


def keep(project_id: int, digests: Iterable[str]) -> None:
    """Something refers to them."""
    _mark(project_id, digests, is_doomed=False)


def _mark(project_id: int, digests: Iterable[str], *, is_doomed: bool) -> None:
    wanted = [bytes.fromhex(digest) for digest in sorted(digests)]
    with binary_cursor() as cursor:
        cursor.execute(_MARK, {"project": project_id, "wanted": wanted, "is_doomed": is_doomed})
