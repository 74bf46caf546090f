"""Writing the content of a run, and reading the nodes of its histories.

A fork begins with steps of its parent. Those that are byte for byte the parent's lie in the parent's content alone, and
so do the nodes of their histories: a fork costs what is new in it.

The nodes of a run lie together in its content. What stands in front of all that it was asked and answered itself may
stand in front of other runs too, as in the turns of a conversation: those nodes have rows, which runs share
(mapping/history_nodes.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any

from sessions_app import models
from sessions_app.core.history import Link
from sessions_app.core.packed_nodes import pack_nodes, unpack_nodes
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.content_keys import keys_of
from sessions_app.mapping.details import details, write_details
from sessions_app.mapping.history_nodes import read_nodes
from sessions_app.payloads.outlines import pack_outline

Digest = bytes | memoryview
"""What a binary column gives."""
StepRow = tuple[StepSummary, bytes]
"""The summary of a step, and its text."""


def hex_of(digest: Digest | None) -> str | None:
    return None if digest is None else bytes(digest).hex()


# --- writing -----------------------------------------------------------------------------------


def write_content(
    project: models.Project, run: Run, steps: Sequence[StepRow], nodes: Mapping[str, Link], columns: Mapping[str, Any]
) -> models.RunContent:
    """`nodes` are those of its histories that other runs do not have; whose steps it shares may."""
    shared = _shared_parts(project, run, steps)
    own_steps = steps[shared[-1]["upto"] if shared else 0 :]
    summaries = [summary for summary, _ in own_steps]
    lent = own_nodes(part["content"] for part in shared)
    own = {digest: link for digest, link in nodes.items() if digest not in lent}
    content = models.RunContent.objects.create(
        project=project,
        outline=pack_outline(summaries),
        step_count=len(summaries),
        change_count=sum(summary.state_changes is not None for summary in summaries),
        keys=keys_of(summaries),
        node_count=len(own),
        nodes=pack_nodes(own) if own else None,
        base_id=shared[-1]["content"] if shared else None,
        shared=shared,
        **columns,
    )
    write_details(content, ((summary.index, text) for summary, text in own_steps))
    return content


def _shared_parts(project: models.Project, run: Run, rows: Sequence[StepRow]) -> list[JsonObject]:
    """Where the first steps of a fork lie, as `RunContent.shared` says it."""
    if run.origin != "fork" or run.parent is None or run.parent.run_id == run.run_id:
        return []
    parent = models.RunContent.objects.filter(run__project=project, run__run_id=run.parent.run_id).first()
    return [] if parent is None else _parts(_equal_steps(parent, rows))


def _equal_steps(parent: models.RunContent, rows: Sequence[StepRow]) -> list[tuple[int, int]]:
    """Where the first steps that are byte for byte those of the parent lie: content and index."""
    theirs = parent.steps[: len(rows)]
    pairs = zip(details(parent, theirs), rows, strict=False)
    equal = takewhile(lambda pair: pair[0] == pair[1][1], pairs)
    return [parent.place_of(summary.index) for _, (summary, _) in equal]


def _parts(places: Iterable[tuple[int, int]]) -> list[JsonObject]:
    """A parent that is a fork shares some of them itself: each part names the content that has them."""
    parts = []
    for content, group in groupby(places, key=lambda place: place[0]):
        indexes = [index for _, index in group]
        parts.append({"content": content, "after": indexes[0] - 1, "upto": indexes[-1]})
    return parts


# --- reading -----------------------------------------------------------------------------------


def read_history(content: models.RunContent, heads: Iterable[str | None]) -> dict[str, Link]:
    """All nodes of a run that these lead to, by digest. Nodes that are gone are not among them."""
    return read_histories([content], heads)


def read_histories(contents: Sequence[models.RunContent], heads: Iterable[str | None]) -> dict[str, Link]:
    """The same of some runs of one project; two queries at most."""
    if not contents:
        return {}
    of_others = own_nodes(part["content"] for content in contents for part in content.shared)
    own = {digest: link for content in contents for digest, link in _unpacked(content.nodes).items()}
    found, lacking = _led_to(heads, of_others | own)
    return found | read_nodes(contents[0].project_id, lacking)


def own_nodes(contents: Iterable[int]) -> dict[str, Link]:
    """Those that lie in these contents; one query, none for no content."""
    rows = models.RunContent.objects.filter(pk__in=list(contents), nodes__isnull=False).values_list("nodes", flat=True)
    return {digest: link for nodes in rows for digest, link in _unpacked(nodes).items()}


def _unpacked(nodes: Digest | None) -> dict[str, Link]:
    return {} if nodes is None else unpack_nodes(bytes(nodes))


def _led_to(heads: Iterable[str | None], nodes: Mapping[str, Link]) -> tuple[dict[str, Link], set[str]]:
    """The nodes from these back, and where they lead beyond what there is."""
    found: dict[str, Link] = {}
    lacking: set[str] = set()
    for head in heads:
        at = head
        while at is not None and at not in found:
            link = nodes.get(at)
            if link is None:
                lacking.add(at)
                break
            found[at] = link
            at = link[0]
    return found, lacking
