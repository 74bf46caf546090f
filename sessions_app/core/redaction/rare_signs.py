"""Finds any of some words fast."""

import re
from collections.abc import Callable, Iterable
from itertools import groupby

_BEST_FIRST = "AJ-_.zjxqvkbpcwyghfmudlrsnioate"
"""Signs that are rare in documents of agents, then those that many of the words share; others come last."""


def finder(words: Iterable[str], then: str = "") -> Callable[[str], bool]:
    """Tells whether any of the words is in a text, with what the expression `then` says behind it.

    An expression that begins with one plain sign is searched for many times faster than any other. So each search goes
    for a sign that some of the words have, and looks around from there.
    """
    by_sign = groupby(sorted(set(words), key=_best_sign), key=_best_sign)
    searches = [re.compile(_expression(sign, list(some)) + then).search for sign, some in by_sign]

    def finds(text: str) -> bool:
        for search in searches:  # noqa: SIM110 - it runs for each string, and `any` takes twice as long
            if search(text):
                return True
        return False

    return finds


def _best_sign(word: str) -> str:
    return min(word, key=lambda sign: _BEST_FIRST.find(sign) % 100)


def _expression(sign: str, words: list[str]) -> str:
    parts = [word.partition(sign) for word in words]
    words_around = "|".join(f"(?<={re.escape(before + sign)}){re.escape(after)}" for before, _, after in parts)
    return f"{re.escape(sign)}{_guard(sign, parts)}(?:{words_around})"


def _guard(sign: str, parts: list[tuple[str, str, str]]) -> str:
    """One look at the signs to both sides spares most places the words."""
    before = {part[0][-1:] for part in parts}
    after = {part[2][:1] for part in parts}
    behind = "" if "" in before else f"(?<={_one_of(before)}{re.escape(sign)})"
    return behind + ("" if "" in after else f"(?={_one_of(after)})")


def _one_of(signs: set[str]) -> str:
    return "[" + "".join(map(re.escape, sorted(signs))) + "]"
