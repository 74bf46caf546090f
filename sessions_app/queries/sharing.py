"""Links to a run, and what belongs to the run that they show."""

from __future__ import annotations

from sessions_app.core.payload import sha256_hex
from sessions_app.mapping.pieces import step_texts
from sessions_app.mapping.references import payload_references, read_references
from sessions_app.mapping.run_contents import read_history
from sessions_app.models import Run, ShareLink

LINKS = 50


def links_of(run: Run) -> list[ShareLink]:
    """Those made last, with who made them; revoked and expired ones stay listed."""
    links = ShareLink.objects.filter(run=run).select_related("created_by")
    return list(links.order_by("-pk")[:LINKS])


def run_holds(run: Run, digest: str) -> bool:
    """Whether the payload is part of the run: of its header, of a step, or a message that a step saw."""
    content = run.content
    texts = [content.intact_header, *step_texts(content, content.steps)]
    ends = [(step.input_node, step.output_node) for step in content.steps]
    links = read_history(content, [node for pair in [*ends, (content.prior_node, content.final_node)] for node in pair])
    named = {each for text in texts for each in payload_references(text)} | {message for _, message in links.values()}
    pieces = read_references(content, {each for each in named if isinstance(each, int)})
    return digest in named or any(sha256_hex(piece) == digest for piece in pieces.values())
