"""Long texts in short places."""

from __future__ import annotations

LENGTH = 80
"""Characters of a value inside a sentence."""


def clipped(text: str, length: int = LENGTH) -> str:
    """The text in so many characters; one that is cut ends in "…"."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
