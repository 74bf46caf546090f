"""The links of a run's histories as bytes.

    MessagePack [[steps back to the parent, 0 for none, …], [message, …]]

A link is named by its number; its parent has a lower one, and is mostly the one before it. The digests of nodes
(core/history.py) are made again from the messages when they are read.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

Reference = int | str
"""A payload: the number of a piece of its content, or a SHA-256 in hex of one that is stored apart."""


def name_of(reference: Reference) -> str:
    """For people."""
    return reference if isinstance(reference, str) else f"piece {reference}"


NumberedLink = tuple[int | None, Reference]
"""The number of the link before it, and the message that it adds."""

_READER = msgspec.msgpack.Decoder(tuple[list[int], list[Reference]])
_WRITER = msgspec.msgpack.Encoder()


def write_links(links: Sequence[NumberedLink], first: int) -> bytes:
    """`first` is the number of the first of them."""
    back = [0 if parent is None else number - parent for number, (parent, _) in enumerate(links, first)]
    return _WRITER.encode((back, [message for _, message in links]))


def read_links(data: bytes, first: int) -> dict[int, NumberedLink]:
    """By number, in their order. Raises `msgspec.DecodeError` for other bytes."""
    back, messages = _READER.decode(data)
    pairs = enumerate(zip(back, messages, strict=True), first)
    return {number: (number - steps if steps else None, message) for number, (steps, message) in pairs}
