"""Which payloads a stored step or header speaks of, and their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set

from sessions_app.core.packed_nodes import Reference
from sessions_app.mapping.payloads import read_many
from sessions_app.mapping.pieces import open_pieces, step_texts
from sessions_app.mapping.run_contents import own_links
from sessions_app.models import RunContent

_REFERENCE = re.compile(rb'"piece": (\d+)|"sha256": "([0-9a-f]{64})"')
"""As mapping/stored.py spells them, and nothing that was recorded."""


def payload_references(text: bytes) -> set[Reference]:
    """Those in a stored text."""
    return {int(piece) if piece else digest.decode() for piece, digest in _REFERENCE.findall(text)}


def read_references(content: RunContent, references: Iterable[Reference]) -> dict[Reference, bytes]:
    """The bytes of those that are stored and can be read; two queries at most, three where the content has a base."""
    return read_references_of([(content, set(references))])[0]


def read_references_of(wanted: Sequence[tuple[RunContent, Set[Reference]]]) -> list[dict[Reference, bytes]]:
    """The same of contents of one project, in as many queries."""
    open_pieces((content, each) for content, every in wanted for each in every if isinstance(each, int))
    apart = {each for _, every in wanted for each in every if isinstance(each, str)}
    rows = read_many(wanted[0][0].project_id, apart) if apart else {}
    return [_found(content, every, rows) for content, every in wanted]


def _found(content: RunContent, wanted: Set[Reference], rows: Mapping[str, bytes]) -> dict[Reference, bytes]:
    pairs = ((each, content.opened.get(each) if isinstance(each, int) else rows.get(each)) for each in wanted)
    return {each: found for each, found in pairs if found is not None}


def stored_apart(content: RunContent) -> set[str]:
    """Digests of the payloads that its own part refers to and does not hold. Raises `StepMissing`."""
    texts = [content.intact_header, *step_texts(content, content.own_steps)]
    every = {each for text in texts for each in payload_references(text)}
    every.update(message for _, message in own_links(content).values())
    return {each for each in every if isinstance(each, str)}
