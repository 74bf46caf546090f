"""Writing the content of a run, and reading the links of its histories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from zstandard import ZstdError

from sessions_app import models
from sessions_app.core.errors import StepMissing
from sessions_app.core.packed_nodes import NumberedLink, read_links, write_links
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.content_keys import keys_of
from sessions_app.mapping.pieces import write_pieces
from sessions_app.mapping.stored import Collector
from sessions_app.models.contents import find_parts
from sessions_app.payloads.compression import compress_block, decompress
from sessions_app.payloads.outlines import pack_outline

# --- writing -----------------------------------------------------------------------------------


def write_content(
    project: models.Project,
    base: models.RunContent | None,
    steps: Sequence[StepSummary],
    collected: Collector,
    **columns: Any,
) -> models.RunContent:
    """`collected` began with what the base has; the first steps are shared with it as far as their texts are equal."""
    shared = 0 if base is None else _equal_steps(base, steps)
    own = steps[shared:]
    content = models.RunContent.objects.create(
        project=project,
        outline=pack_outline(own),
        step_count=len(own),
        change_count=sum(step.state_changes is not None for step in own),
        keys=keys_of(own, collected.keys),
        nodes=compress_block(write_links(collected.links, base.next_node if base else 0)) if collected.links else None,
        node_count=len(collected.links),
        first_node=base.next_node if base else 0,
        piece_count=len(collected.pieces),
        first_piece=base.next_piece if base else 0,
        base=base,
        base_steps=shared,
        **columns,
    )
    write_pieces(content, collected.pieces)
    return content


def _equal_steps(base: models.RunContent, steps: Sequence[StepSummary]) -> int:
    """With how many steps of its base the run begins: those have the same texts, which are the same pieces then.

    With none where those of the base are damaged.
    """
    try:
        pairs = list(zip(base.steps, steps, strict=False))
    except StepMissing:
        return 0
    return next((at for at, (theirs, ours) in enumerate(pairs) if theirs.text != ours.text), len(pairs))


# --- reading -----------------------------------------------------------------------------------


def read_history(content: models.RunContent, heads: Iterable[int | None]) -> dict[int, NumberedLink]:
    """All links of a run that these lead to, by number, each behind the one it follows.

    Those that are gone are not among them. No query, and three where the content has a base.
    """
    return read_histories([content], [list(heads)])[0]


def read_histories(
    contents: Sequence[models.RunContent], heads: Sequence[Iterable[int | None]]
) -> list[dict[int, NumberedLink]]:
    """The same of several runs, in as many queries."""
    every = _all_links(contents)
    return [_led_to(ends, links) for ends, links in zip(heads, every, strict=True)]


def _all_links(contents: Sequence[models.RunContent]) -> list[dict[int, NumberedLink]]:
    find_parts(contents)
    bases = {part.content for content in contents for part in content.parts} - {content.pk for content in contents}
    holders = models.RunContent.objects.only("nodes", "first_node").in_bulk(bases) if bases else {}
    holders |= {content.pk: content for content in contents}
    return [
        {number: link for part in content.parts for number, link in own_links(holders[part.content]).items()}
        for content in contents
    ]


def own_links(content: models.RunContent) -> dict[int, NumberedLink]:
    """Those that it does not have from its base; none where they are damaged."""
    try:
        return {} if content.nodes is None else read_links(decompress(bytes(content.nodes)), content.first_node)
    except (ZstdError, msgspec.DecodeError):
        return {}


def _led_to(heads: Iterable[int | None], links: Mapping[int, NumberedLink]) -> dict[int, NumberedLink]:
    wanted: set[int] = set()
    for head in heads:
        wanted.update(_back_from(head, links, wanted))
    return {number: links[number] for number in sorted(wanted)}


def _back_from(head: int | None, links: Mapping[int, NumberedLink], known: set[int]) -> Iterator[int]:
    at = head
    while at is not None and at in links and at not in known:
        yield at
        at = links[at][0]
