"""Reading and writing payloads by digest."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

from sessions_app.core.errors import PayloadMissing
from sessions_app.core.payload import sha256_hex
from sessions_app.models import StoredPayload
from sessions_app.payloads.blobs import BlobFolder
from sessions_app.payloads.compression import pack, unpack

_BATCH = 1000


def blob_folder() -> BlobFolder:
    return BlobFolder(Path(settings.REPLAY_BLOBS))


def write_many(project_id: int, contents: dict[str, bytes]) -> None:
    """Store what is not stored yet; call it inside the transaction that adds the references.

    Blobs are complete on disk before their rows are written, so no row ever names a missing blob.
    """
    rows = [_row(project_id, digest, content) for digest, content in sorted(contents.items())]
    StoredPayload.objects.bulk_create(rows, ignore_conflicts=True, batch_size=_BATCH)


def _row(project_id: int, digest: str, content: bytes) -> StoredPayload:
    packed = pack(content)
    in_database = len(packed.data) <= settings.REPLAY_BLOB_THRESHOLD_BYTES
    if not in_database:
        blob_folder().write(project_id, digest, packed.data)
    return StoredPayload(
        project_id=project_id,
        digest=bytes.fromhex(digest),
        size=len(content),
        stored_size=len(packed.data),
        data=packed.data if in_database else None,
        is_compressed=packed.is_compressed,
    )


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
