"""What a content goes on from: a replay from what it replayed, a turn of a conversation from the turn before."""

from __future__ import annotations

from itertools import islice

from sessions_app.core.history import node_digest
from sessions_app.core.history import nodes as nodes_from
from sessions_app.core.payload import sha256_hex
from sessions_app.core.run import Run
from sessions_app.mapping.content_keys import holding
from sessions_app.mapping.contents_by_key import contents_by_key
from sessions_app.mapping.pieces import read_pieces
from sessions_app.mapping.references import read_references
from sessions_app.mapping.run_contents import read_history
from sessions_app.mapping.stored import Numbers
from sessions_app.models import Project, RunContent

_ENDS = 8
"""Messages at the end of an earlier history that may have come after the turn before it."""


def find_base(project: Project, run: Run) -> RunContent | None:
    """None for a run that begins by itself."""
    current = RunContent.objects.filter(project=project, run__isnull=False)
    if run.parent is not None and run.parent.run_id != run.run_id and run.origin != "recorded":
        return current.filter(run__run_id=run.parent.run_id).first()
    ends = [holding(node.digest) for node in islice(nodes_from(run.prior), _ENDS)]
    if not ends:
        return None
    # Its own older content ends so too where the run grows; that goes when nothing else needs it.
    found = current.filter(pk__in=contents_by_key([project.pk], ends), run__origin="recorded")
    return found.exclude(run__run_id=run.run_id).order_by("-pk").first()


def numbers_of(base: RunContent | None) -> Numbers:
    """Pieces that cannot be read are not among them, nor nodes that lead to them."""
    if base is None:
        return Numbers()
    pieces = read_pieces(base, range(base.next_piece))
    return Numbers(
        pieces={content: number for number, content in pieces.items()},
        nodes=_node_numbers(base),
        next_piece=base.next_piece,
        next_node=base.next_node,
    )


def _node_numbers(base: RunContent) -> dict[str, int]:
    links = read_history(base, range(base.next_node))
    contents = read_references(base, {message for _, message in links.values()})
    digests = {reference: sha256_hex(content) for reference, content in contents.items()}
    found: dict[int, str] = {}
    for number, (parent, message) in links.items():
        if message in digests and (parent is None or parent in found):
            found[number] = node_digest(None if parent is None else found[parent], digests[message])
    return {digest: number for number, digest in found.items()}
