"""Long texts in short places, and nothing in them that cannot be seen."""

from __future__ import annotations

import json
import re
import unicodedata

LENGTH = 80
"""Characters of a value inside a sentence."""


def clipped(text: str, length: int = LENGTH) -> str:
    """The text in so many characters; one that is cut ends in "…"."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def unescaped(text: str) -> str:
    """JSON text with the letters that it spells as `\\u6ce8`: many producers write ASCII alone.

    What means something to JSON, or cannot be seen, stays escaped.
    """
    return _ESCAPES.sub(_letters, text) if "\\u" in text else text


_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\\\")
"""A backslash that is itself escaped begins no escape."""


def _letters(found: re.Match[str]) -> str:
    letters: str = found[0] if found[0] == r"\\" else json.loads(f'"{found[0]}"')
    return letters if letters.isprintable() and not set(letters) & set('"\\') else found[0]


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
