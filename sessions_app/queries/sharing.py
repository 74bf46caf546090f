"""Links to a run, and what belongs to the run that they show."""

from __future__ import annotations

from sessions_app.mapping.details import details
from sessions_app.mapping.references import payload_references
from sessions_app.mapping.run_contents import hex_of, read_history
from sessions_app.models import Run, ShareLink

LINKS = 50


def links_of(run: Run) -> list[ShareLink]:
    """Those made last, with who made them; revoked and expired ones stay listed."""
    links = ShareLink.objects.filter(run=run).select_related("created_by")
    return list(links.order_by("-pk")[:LINKS])


def run_holds(run: Run, digest: str) -> bool:
    """Whether the payload is part of the run: of its header, of a step, or a message that a step saw."""
    in_header = payload_references(bytes(run.content.header))
    return digest in in_header or _in_a_step(run, digest) or _in_a_history(run, digest)


def _in_a_step(run: Run, digest: str) -> bool:
    return any(digest in payload_references(text) for text in details(run.content, run.steps))


def _in_a_history(run: Run, digest: str) -> bool:
    content = run.content
    ends = [(step.input_node, step.output_node) for step in run.steps]
    nodes = {hex_of(node) for pair in [*ends, (content.prior_node, content.final_node)] for node in pair}
    links = read_history(content, nodes)
    return any(message == digest for _, message in links.values())
