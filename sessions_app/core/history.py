"""Message histories as a hash chain: node = SHA-256(parent node ‖ message).

A model step keeps the node that went in and the node that came out, so a run of N steps costs O(N),
a fork shares its parent's chain, and two runs part where their nodes do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from sessions_app.core.payload import Payload

Link = tuple[str | None, str]
"""A node as it is stored under its digest: the digests of its parent and of the message that it adds."""


class History:
    """An immutable list of messages that shares its beginning with the list it was made from."""

    __slots__ = ("digest", "length", "message", "parent")

    def __init__(self, parent: History | None, message: Payload) -> None:
        self.parent = parent
        self.message = message
        self.length: int = parent.length + 1 if parent else 1
        self.digest: str = node_digest(parent.digest if parent else None, message.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<History of {self.length}, {self.digest[:12]}>"


def node_digest(parent: str | None, message: str) -> str:
    """`parent` and `message` are hex SHA-256 digests; a chain's first node has no parent."""
    return hashlib.sha256(bytes.fromhex(parent or "") + bytes.fromhex(message)).hexdigest()


def extend(history: History | None, messages: Iterable[Payload]) -> History | None:
    for message in messages:
        history = History(history, message)
    return history


def nodes(history: History | None) -> Iterator[History]:
    """The nodes from the newest to the oldest."""
    while history is not None:
        yield history
        history = history.parent


def messages(history: History | None) -> list[Payload]:
    """The messages, oldest first."""
    return [node.message for node in nodes(history)][::-1]
