"""Everything that is stored, also what is compressed in it: to show that a secret is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from sessions_app.mapping.payloads import read_many
from sessions_app.mapping.pieces import read_pieces
from sessions_app.models import RunContent, StoredPayload, Trace
from sessions_app.services.span_batches import open_batches
from tests.builders import all_stored_bytes


def everything() -> Iterator[tuple[str, bytes]]:
    """Each with where it is."""
    yield from all_stored_bytes()
    for content in RunContent.objects.all():
        yield "header", bytes(content.header)
        yield "steps", repr(content.own_steps).encode()
        pieces = read_pieces(content, range(content.first_piece, content.next_piece))
        yield from (("piece", piece) for piece in pieces.values())
    for row in StoredPayload.objects.all():
        yield from (("payload", content) for content in read_many(row.project_id, [str(row)]).values())
    for trace in Trace.objects.all():
        yield from (("spans", content or b"") for _, content in open_batches(trace.batches.all()))
    files = {file.name for file in Path(settings.REPLAY_BLOBS).glob("*/*/*")}
    assert files == {str(row) for row in StoredPayload.objects.filter(data=None)}, "a blob without its row"
