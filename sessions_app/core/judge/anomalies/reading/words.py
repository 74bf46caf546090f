"""The words of a text by their beginnings, also where a script has no spaces between them."""

from __future__ import annotations

import re
from itertools import pairwise

_STEM = 5
_WORD = re.compile(r"[\u30a0-\u30ff]{2,}|[\u4e00-\u9fff]+|(?:(?![\u3040-\u30ff\u4e00-\u9fff])[^\W\d_]){4,}")
"""Of Japanese the words in katakana and in Chinese characters; hiragana inflect and join."""


def stems_in(*texts: str) -> set[str]:
    found = (word for text in texts for word in _WORD.findall(text.lower()))
    return {stem for word in found for stem in _stems(word)}


def _stems(word: str) -> list[str]:
    """Chinese characters by two, as nothing says where a word ends."""
    if "\u4e00" <= word[0] <= "\u9fff":
        return [one + other for one, other in pairwise(word)]
    return [word[:_STEM]]
