"""Reading and writing payloads by digest."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

from sessions_app.core.errors import PayloadMissing
from sessions_app.core.payload import sha256_hex
from sessions_app.mapping.binary_rows import insert_new, known_digests
from sessions_app.models import StoredPayload
from sessions_app.payloads.blobs import BlobFolder
from sessions_app.payloads.compression import pack, unpack

_BATCH = 500
"""Payloads that are held compressed at a time."""


def blob_folder() -> BlobFolder:
    return BlobFolder(Path(settings.REPLAY_BLOBS))


def write_many(project_id: int, contents: dict[str, bytes]) -> None:
    """Store what is not stored yet; call it inside the transaction that adds the references.

    Blobs are complete on disk before their rows are written, so no row ever names a missing blob. Rows are written in
    the order of digests, so that two writers never wait in a circle.
    """
    new = sorted(contents.keys() - known_digests(StoredPayload, project_id, contents))
    for start in range(0, len(new), _BATCH):
        insert_new(StoredPayload, _columns(project_id, {digest: contents[digest] for digest in new[start:][:_BATCH]}))


def _columns(project_id: int, contents: dict[str, bytes]) -> dict[str, list[object]]:
    packed = {digest: pack(content) for digest, content in contents.items()}
    return {
        "project_id": [project_id] * len(contents),
        "digest": [bytes.fromhex(digest) for digest in contents],
        "size": [len(content) for content in contents.values()],
        "stored_size": [len(each.data) for each in packed.values()],
        "data": [_in_row(project_id, digest, each.data) for digest, each in packed.items()],
        "is_compressed": [each.is_compressed for each in packed.values()],
    }


def _in_row(project_id: int, digest: str, data: bytes) -> bytes | None:
    """What the row holds; None when the bytes lie in the blob folder."""
    if len(data) <= settings.REPLAY_BLOB_THRESHOLD_BYTES:
        return data
    blob_folder().write(project_id, digest, data)
    return None


def read_many(project_id: int, digests: Iterable[str]) -> dict[str, bytes]:
    """The bytes of those that are stored; one query."""
    wanted = [bytes.fromhex(digest) for digest in digests]
    if not wanted:
        return {}
    rows = StoredPayload.objects.filter(project_id=project_id, digest__in=wanted)
    found = ((bytes(row.digest).hex(), content(row)) for row in rows)
    return {digest: data for digest, data in found if data is not None}


def read(project_id: int, digest: str) -> bytes:
    """The exact bytes, checked against their name."""
    content = read_many(project_id, [digest]).get(digest)
    if content is None or sha256_hex(content) != digest:
        raise PayloadMissing(digest)
    return content


def content(row: StoredPayload) -> bytes | None:
    """None when the bytes are gone from the blob folder."""
    digest = bytes(row.digest).hex()
    data = row.data if row.data is not None else blob_folder().read(row.project_id, digest)
    return None if data is None else unpack(bytes(data), is_compressed=row.is_compressed)
