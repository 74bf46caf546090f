"""Long texts in short places, and nothing in them that cannot be seen."""

from __future__ import annotations

import re
import unicodedata

LENGTH = 80
"""Characters of a value inside a sentence."""


def clipped(text: str, length: int = LENGTH) -> str:
    """The text in so many characters; one that is cut ends in "…"."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def shortened(text: str, limit: int = 120) -> str:
    """The beginning on one line."""
    line = one_line(text[: limit + 1])
    return line if len(text) <= limit else f"{line[:limit]}…"


def one_line(text: str) -> str:
    return visible(re.sub(r"[\r\n\t]", " ", text))


def visible(text: str) -> str:
    """Control and direction characters as escapes: what is shown is what is there."""
    return "".join(_visible_character(c) for c in text)


_NOT_SHOWN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _visible_character(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _NOT_SHOWN:
        return character
    return f"\\u{ord(character):04x}"
