"""What is no longer there: payloads whose bytes are gone, while the steps that speak of them are stored."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.mapping.pieces import read_pieces
from sessions_app.models import ContentBlock, Project, RunContent, StoredPayload
from sessions_app.payloads.blocks import pack_block


def lose_payloads(project: Project) -> None:
    """All of them; the documents as they were received too."""
    StoredPayload.objects.filter(project=project).delete()
    for content in RunContent.objects.filter(project=project):
        texts = {step.text for step in content.own_steps}
        _keep(content, lambda number, _: number in texts)  # noqa: B023 - it is called at once


def lose_payload(content: bytes) -> None:
    """This one, in all projects."""
    StoredPayload.objects.filter(size=len(content)).delete()
    for row in RunContent.objects.all():
        _keep(row, lambda _, piece: piece != content)


def _keep(content: RunContent, is_kept: Callable[[int, bytes], bool]) -> None:
    """Each piece that is left lies in a block of its own, so that there are gaps between them."""
    pieces = read_pieces(content, range(content.first_piece, content.next_piece))
    kept = {number: piece for number, piece in pieces.items() if is_kept(number, piece)}
    ContentBlock.objects.filter(content=content).delete()
    ContentBlock.objects.bulk_create(
        ContentBlock(content=content, first=number, data=pack_block([piece])) for number, piece in sorted(kept.items())
    )
