"""Ids in pasted text: a log line, an address, a chat message."""

from __future__ import annotations

import re
from urllib.parse import unquote

SHORTEST = 6
"""Characters of an id that are enough to find it by its beginning."""
MOST = 24

_SPACE = re.compile(r"\s+")
_EDGE = "\"'`.,;:!?()[]{}<>|="
_INNER = re.compile(r"[\s=/?&#,;:|<>()\[\]{}\"'`\\]+")


def id_candidates(text: str) -> list[str]:
    """What may be an id in a text, the whole text first; without repeats."""
    whole = text.strip()
    found = [whole]
    for word in _SPACE.split(whole):
        decoded = unquote(unquote(word))
        found += [word.strip(_EDGE), decoded.strip(_EDGE), *_INNER.split(decoded)]
    return [word for word in dict.fromkeys(found) if 3 <= len(word) <= 512 and "\x00" not in word][:MOST]


def looks_generated(word: str) -> bool:
    """Whether a word among others is likely an id: plain words have no digits."""
    return any(character.isdigit() for character in word)
