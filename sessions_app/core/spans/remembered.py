"""What is known of pieces that come again in request after request: instructions, tool definitions, histories."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock


class RememberedPieces:
    """The pieces used last, up to so many bytes; for several threads. Holds no bytes that were not redacted."""

    def __init__(self, most_bytes: int) -> None:
        self._room = most_bytes
        self._lock = Lock()
        self._pieces: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, key: bytes) -> bytes | None:
        with self._lock:
            piece = self._pieces.get(key)
            if piece is not None:
                self._pieces.move_to_end(key)
            return piece

    def put(self, key: bytes, piece: bytes) -> bytes:
        """The piece that was there before, else this one."""
        with self._lock:
            if key in self._pieces:
                self._pieces.move_to_end(key)
                return self._pieces[key]
            self._pieces[key] = piece
            self._room -= cost(piece)
            while self._room < 0:
                _, oldest = self._pieces.popitem(last=False)
                self._room += cost(oldest)
            return piece


_OVERHEAD = 250
"""Bytes that an entry takes beside its piece."""


def cost(piece: bytes) -> int:
    return len(piece) + _OVERHEAD


def key_of(secret: bytes, content: bytes, *, is_json: bool) -> bytes:
    """Names a piece as it arrived in a project, by the secret that the project redacts with."""
    key = hashlib.sha256(secret)
    key.update(b"j" if is_json else b"t")
    key.update(content)
    return key.digest()
