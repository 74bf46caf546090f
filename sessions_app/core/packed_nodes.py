"""Nodes of hash chains as bytes, in which one takes little more than the digest of its message.

    (parent 32 bytes, zeros for none ‖ number of nodes 4 bytes ‖ digest of each message 32 bytes) …

Nodes that follow one another stand together, the oldest first; what they follow is named once. Their own digests are
made again when they are read, so bytes that are damaged lead nowhere instead of to another history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from sessions_app.core.history import Link

_DIGEST = 32
_COUNT = 4
_ROOT = bytes(_DIGEST)


def pack_nodes(nodes: Mapping[str, Link]) -> bytes:
    """Nodes by their digests, in any order."""
    followed = {parent for parent, _ in nodes.values()}
    packed: set[str] = set()
    parts: list[bytes] = []
    for newest in (digest for digest in nodes if digest not in followed):
        path = _path(newest, nodes, packed)
        packed.update(path)
        parts += _stretch(nodes[path[-1]][0], [nodes[node][1] for node in reversed(path)])
    return b"".join(parts)


def _path(digest: str, nodes: Mapping[str, Link], packed: set[str]) -> list[str]:
    """From a node back to the first that is packed already or is not ours."""
    path: list[str] = []
    at: str | None = digest
    while at is not None and at in nodes and at not in packed:
        path.append(at)
        at = nodes[at][0]
    return path


def _stretch(parent: str | None, messages: list[str]) -> Iterable[bytes]:
    yield _ROOT if parent is None else bytes.fromhex(parent)
    yield len(messages).to_bytes(_COUNT, "big")
    yield bytes.fromhex("".join(messages))


def unpack_nodes(packed: bytes) -> dict[str, Link]:
    """By digest, each after the one it follows."""
    nodes: dict[str, Link] = {}
    at = 0
    while at < len(packed):
        parent, begin = packed[at : at + _DIGEST], at + _DIGEST + _COUNT
        at = begin + _DIGEST * int.from_bytes(packed[begin - _COUNT : begin], "big")
        _add(nodes, b"" if parent == _ROOT else parent, packed[begin:at])
    return nodes


def _add(nodes: dict[str, Link], parent: bytes, messages: bytes) -> None:
    for start in range(0, len(messages), _DIGEST):
        message = messages[start : start + _DIGEST]
        digest = hashlib.sha256(parent + message).digest()
        nodes[digest.hex()] = parent.hex() or None, message.hex()
        parent = digest
