"""Batches that carry the pieces that they refer to.

A piece in a row of its own costs 200 bytes for its names and their index, and a look-up; most pieces of a session are
shorter than that once they are compressed together. So a batch carries its chains and its short pieces as long as they
are few. Long ones, and those that many traces have, stay rows, which batches share.

    {"cut": bytes before the names, "rest": bytes behind them, "pieces": [size, …], "shared": [digest, …],
     "parents": [link or -1, …], "elements": [piece, …], "nodes": [link, …], "payloads": [piece, …]} 0x00
    before ‖ rest ‖ piece ‖ piece …

Pieces are counted through: those that are carried, then the shared ones. A batch is read back to the letter, names and
all, so that its digest, which speaks for every piece in it, does not tell whether it carried them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sessions_app.core.history import Link, node_digest
from sessions_app.core.payload import JsonObject, compact_json, sha256_hex
from sessions_app.core.spans.batch import Batch
from sessions_app.core.spans.packing import Pieces

SHARED = 4_000
"""Bytes from which a piece stays a row."""
WORTH_A_ROW = 200
"""Bytes from which one that many traces have does."""
FEW = 16 * 1024
"""Bytes that a batch carries when its trace may go on: the next one carries them again."""
MANY = 256 * 1024
"""The same for a trace that came whole."""
_LINK_BYTES = 8
"""About what a link takes."""
_OPENING = b'{"cut":'
_NODES, _PAYLOADS, _WORDS = b',"nodes":', b',"payloads":', b',"words":'


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A batch as it is stored, and the pieces that are stored beside it."""

    content: bytes
    beside: Pieces


def carry(batch: Batch, *, most: int, is_common: Callable[[str], bool] = lambda digest: False) -> Stored:
    """The batch with its pieces; as it is where they are more than `most` bytes.

    `is_common` says of the digest of a piece whether many traces have it.
    """
    content, pieces = batch.content, batch.pieces
    own = {digest: piece for digest, piece in pieces.payloads.items() if not _is_shared(digest, piece, is_common)}
    if not pieces.payloads or sum(map(len, own.values())) + _LINK_BYTES * len(pieces.nodes) > most:
        return Stored(content=content, beside=pieces)
    shared = {digest: piece for digest, piece in pieces.payloads.items() if digest not in own}
    # In strings a quote stands behind a backslash: these are the names themselves.
    cut, words = content.index(_NODES), content.index(_WORDS)
    header = {
        "cut": cut,
        "rest": len(content) - words,
        "pieces": [len(piece) for piece in own.values()],
        "shared": list(shared),
        **_positions(batch, [*own, *shared]),
    }
    carried = b"".join([compact_json(header), b"\0", content[:cut], content[words:], *own.values()])
    return Stored(content=carried, beside=Pieces(payloads=shared))


def _is_shared(digest: str, piece: bytes, is_common: Callable[[str], bool]) -> bool:
    return len(piece) >= SHARED or (len(piece) >= WORTH_A_ROW and is_common(digest))


def _positions(batch: Batch, digests: Iterable[str]) -> JsonObject:
    nodes = batch.pieces.nodes
    link_at = {node: position for position, node in enumerate(nodes)}
    piece_at = {digest: position for position, digest in enumerate(digests)}
    return {
        "parents": [-1 if parent is None else link_at[parent] for parent, _ in nodes.values()],
        "elements": [piece_at[element] for _, element in nodes.values()],
        "nodes": [link_at[node] for node in batch.nodes],
        "payloads": [piece_at[digest] for digest in batch.payloads],
    }


def apart(stored: bytes) -> tuple[bytes, Pieces]:
    """The batch without what it carried, and that."""
    if not stored.startswith(_OPENING):
        return stored, Pieces()
    text, _, body = stored.partition(b"\0")
    header = json.loads(text)
    cut, rest = header["cut"], header["cut"] + header["rest"]
    own = [body[start:end] for start, end in pairwise(accumulate(header["pieces"], initial=rest))]
    digests = [*map(sha256_hex, own), *header["shared"]]
    nodes = _nodes(header["parents"], [digests[element] for element in header["elements"]])
    heads = list(nodes)
    names = [_NODES, [heads[link] for link in header["nodes"]], _PAYLOADS, [digests[at] for at in header["payloads"]]]
    said = b"".join(name if isinstance(name, bytes) else compact_json(name) for name in names)
    pieces = Pieces(payloads=dict(zip(digests, own, strict=False)), nodes=nodes)
    return body[:cut] + said + body[cut:rest], pieces


def _nodes(parents: Sequence[int], elements: Sequence[str]) -> dict[str, Link]:
    """A parent stands before its children."""
    nodes: dict[str, Link] = {}
    heads: list[str] = []
    for parent, element in zip(parents, elements, strict=True):
        link = (None if parent < 0 else heads[parent], element)
        heads.append(node_digest(*link))
        nodes[heads[-1]] = link
    return nodes
