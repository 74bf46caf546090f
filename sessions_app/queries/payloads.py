"""A payload of a project by its SHA-256, wherever it lies."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.errors import PayloadMissing
from sessions_app.core.payload import sha256_hex
from sessions_app.mapping.content_keys import holding
from sessions_app.mapping.contents_by_key import contents_by_key
from sessions_app.mapping.payloads import read_many
from sessions_app.mapping.pieces import read_pieces
from sessions_app.models import RunContent, StoredPayload

_HOLDERS = 20
"""Contents that are looked at: other things may have the same key, and blocks may be damaged."""


def read_payload(project_id: int, digest: str) -> bytes:
    """The exact bytes, checked against their name. Raises `PayloadMissing`."""
    content = read_many(project_id, [digest]).get(digest)
    if content is not None and sha256_hex(content) == digest:
        return content
    return _read_piece(project_id, digest)


def _read_piece(project_id: int, digest: str) -> bytes:
    holders = contents_by_key([project_id], [holding(digest)])[:_HOLDERS]
    for content in RunContent.objects.filter(pk__in=holders).only("base", "first_piece", "piece_count"):
        pieces = read_pieces(content, range(content.first_piece, content.next_piece))
        for piece in pieces.values():
            if sha256_hex(piece) == digest:
                return piece
    raise PayloadMissing(digest)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """How one payload is stored that stands alone."""

    stored: int
    is_compressed: bool


def kept_as(project_id: int, digest: str) -> Kept | None:
    """`digest` in hex; None for one that lies among the pieces of a run."""
    rows = StoredPayload.objects.filter(project=project_id, digest=bytes.fromhex(digest))
    found = rows.values_list("stored_size", "is_compressed").first()
    return None if found is None else Kept(stored=found[0], is_compressed=found[1])
