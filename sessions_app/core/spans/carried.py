"""Batches that carry the pieces that they refer to.

A piece in a row of its own costs 200 bytes for its names and their index, and a look-up; most pieces of a session are
shorter than that once they are compressed together. So a batch carries its chains and its short pieces as long as they
are few, but for those that earlier batches of its trace carry. Long ones, and those that many traces have, stay rows,
which batches share.

    {"cut": bytes before the names, "rest": bytes behind them, "pieces": [size, …], "shared": [digest, …],
     "earlier": [digest, …], "parents": [link or -1, …], "elements": [piece, …], "nodes": [link, …],
     "payloads": [piece, …]} 0x00
    before ‖ rest ‖ piece ‖ piece …

Pieces are counted through: those that are carried, then those that are rows or in an earlier batch. So are links: first
those of earlier batches. A batch is read back to the letter, names and all, so that its digest, which speaks for every
piece in it, does not tell whether it carried them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sessions_app.core.history import Link, node_digest
from sessions_app.core.payload import LONG, JsonObject, compact_json, sha256_hex
from sessions_app.core.spans.batch import Batch, references_of
from sessions_app.core.spans.known import Known
from sessions_app.core.spans.packing import Pieces, References

WORTH_A_ROW = 200
"""Bytes from which one that many traces have does."""
FEW = 256 * 1024
"""Bytes that a batch carries when its trace may go on and it is not known what the trace has: the next one may carry
them again."""
MANY = 1024 * 1024
"""The same for a trace that came whole, and for one of which it is known."""
_LINK_BYTES = 8
"""About what a link takes."""
_OPENING = b'{"cut":'
_NODES, _PAYLOADS, _WORDS = b',"nodes":', b',"payloads":', b',"words":'


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A batch as it is stored, and the pieces that are stored beside it."""

    content: bytes
    beside: Pieces


def carry(
    batch: Batch, *, most: int, known: Known | None = None, is_common: Callable[[str], bool] = lambda digest: False
) -> Stored:
    """The batch with its pieces; as it is where they are more than `most` bytes.

    `known` is what its trace has already; `is_common` says of the digest of a piece whether many traces have it.
    """
    content, pieces = batch.content, batch.pieces
    fresh = pieces if known is None else known.without(pieces)
    own = {digest: piece for digest, piece in fresh.payloads.items() if not _is_shared(digest, piece, is_common)}
    if not pieces.payloads or sum(map(len, own.values())) + _LINK_BYTES * len(fresh.nodes) > most:
        # All of them, so that rows lead to nothing but rows.
        return Stored(content=content, beside=pieces)
    # In strings a quote stands behind a backslash: these are the names themselves.
    cut, words = content.index(_NODES), content.index(_WORDS)
    header = {
        "cut": cut,
        "rest": len(content) - words,
        "pieces": [len(piece) for piece in own.values()],
        **_positions(batch, own, fresh.nodes),
    }
    carried = b"".join([compact_json(header), b"\0", content[:cut], content[words:], *own.values()])
    shared = {digest: piece for digest, piece in fresh.payloads.items() if digest not in own}
    return Stored(content=carried, beside=Pieces(payloads=shared))


def _is_shared(digest: str, piece: bytes, is_common: Callable[[str], bool]) -> bool:
    return len(piece) >= LONG or (len(piece) >= WORTH_A_ROW and is_common(digest))


def _positions(batch: Batch, own: Iterable[str], nodes: Mapping[str, Link]) -> JsonObject:
    parents = [parent for parent, _ in nodes.values() if parent is not None]
    earlier = list(dict.fromkeys(head for head in (*parents, *batch.nodes) if head not in nodes))
    pieces, links = References(own), References([*earlier, *nodes])
    carried = len(pieces.digests)
    positions = {
        "parents": [-1 if parent is None else links.position(parent) for parent, _ in nodes.values()],
        "elements": [pieces.position(element) for _, element in nodes.values()],
        "nodes": [links.position(node) for node in batch.nodes],
        "payloads": [pieces.position(digest) for digest in batch.payloads],
    }
    return {"shared": pieces.digests[carried:], "earlier": earlier, **positions}


def apart(stored: bytes) -> tuple[bytes, Pieces]:
    """The batch without what it carried, and that."""
    if not stored.startswith(_OPENING):
        return stored, Pieces()
    text, _, body = stored.partition(b"\0")
    header = json.loads(text)
    cut, rest = header["cut"], header["cut"] + header["rest"]
    own = [body[start:end] for start, end in pairwise(accumulate(header["pieces"], initial=rest))]
    digests = [*map(sha256_hex, own), *header["shared"]]
    earlier: list[str] = header.get("earlier", [])
    nodes = _nodes(earlier, header["parents"], [digests[element] for element in header["elements"]])
    heads = [*earlier, *nodes]
    names = [_NODES, [heads[link] for link in header["nodes"]], _PAYLOADS, [digests[at] for at in header["payloads"]]]
    said = b"".join(name if isinstance(name, bytes) else compact_json(name) for name in names)
    pieces = Pieces(payloads=dict(zip(digests, own, strict=False)), nodes=nodes)
    return body[:cut] + said + body[cut:rest], pieces


def _nodes(earlier: Sequence[str], parents: Sequence[int], elements: Sequence[str]) -> dict[str, Link]:
    """A parent stands before its children."""
    nodes: dict[str, Link] = {}
    heads = list(earlier)
    for parent, element in zip(parents, elements, strict=True):
        link = (None if parent < 0 else heads[parent], element)
        heads.append(node_digest(*link))
        nodes[heads[-1]] = link
    return nodes


def lacking(contents: Iterable[bytes], carried: Pieces) -> tuple[set[str], set[str]]:
    """Nodes and payloads that batches name and nobody carries: they are rows, and those lead to more."""
    nodes = {parent for parent, _ in carried.nodes.values() if parent is not None}
    digests = {element for _, element in carried.nodes.values()}
    for content in contents:
        heads, named = references_of(content)
        nodes.update(heads)
        digests.update(named)
    return nodes - carried.nodes.keys(), digests - carried.payloads.keys()
