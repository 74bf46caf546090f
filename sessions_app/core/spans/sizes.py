"""How much was said, before anything was packed."""

from __future__ import annotations

from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.span import Attributes

_NUMBER = 8


def said_bytes(said: Attributes) -> int:
    """Bytes of the names and values as protobuf carries them: texts in UTF-8, 8 for a number, nothing for the frame."""
    total = 0
    waiting: list[JsonValue] = [said]
    for value in waiting:  # which grows on the way
        if isinstance(value, str):
            total += len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
        elif isinstance(value, dict):
            waiting.append("".join(value))
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
        else:
            total += _NUMBER
    return total
