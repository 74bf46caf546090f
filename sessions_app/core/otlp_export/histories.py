"""Whole conversations as the short histories of a record: what was added to one that is there already."""

from __future__ import annotations

from collections import deque

from sessions_app.core.formats.json_writer import array_text, object_text, scalar

_LOOK_BACK = 32
"""Conversations that a history may go on from; sub-agents take turns."""


class Histories:
    """The conversations of one run, as its model calls come in order."""

    def __init__(self) -> None:
        self._known: deque[tuple[list[bytes], int]] = deque(maxlen=_LOOK_BACK)

    def add(self, messages: list[bytes], after: int) -> None:
        """`after` names it in a record: 0 for the earlier turns, else the step whose answer ends it."""
        self._known.append((messages, after))

    def text(self, messages: list[bytes]) -> bytes:
        """The JSON text of the history."""
        for known, after in reversed(self._known):
            if messages[: len(known)] == known:
                return object_text([("after", scalar(after)), ("messages", array_text(messages[len(known) :]))])
        return object_text([("messages", array_text(messages))])
