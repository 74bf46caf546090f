"""Where the words of a query stand in a run: a piece of text around the first of them, with those in it marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_AROUND = 60
"""Characters on each side."""


Pieces = tuple[tuple[str, bool], ...]
"""A text in pieces, and which of them are words of the query."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snippet:
    """`where` is a word for the place, such as `answer`; with a step, one of its steps."""

    where: str
    pieces: Pieces
    step: int | None = None

    @property
    def is_at_start(self) -> bool:
        """Whether the first words of a run's question, answer or error hold it, which a list shows anyway."""
        return self.where in ("asked", "answered", "error") and not self.pieces[0][0].startswith("…")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A text that is looked at."""

    where: str
    text: str | None
    step: int | None = None


def snippet(places: Iterable[Place], phrases: Sequence[str]) -> Snippet | None:
    """The first place that holds a phrase, whatever the case of its letters. None where no place holds one."""
    pattern = pattern_of(phrases)
    if pattern is None:
        return None
    for place in places:
        if place.text and (found := pattern.search(place.text)):
            return Snippet(where=place.where, step=place.step, pieces=tuple(_pieces(place.text, found, pattern)))
    return None


def pieces_of(text: str, phrase: str) -> Pieces:
    """Nothing where the phrase is not in the text."""
    found = snippet([Place(where="", text=text)], [phrase])
    return found.pieces if found else ()


def marked_whole(text: str, phrases: Sequence[str]) -> Pieces:
    """All of the text, with each of the phrases marked wherever it stands."""
    pattern = pattern_of(phrases)
    if pattern is None:
        return ((text, False),)
    # What stands between two finds, and the finds: every second one.
    ends = [0, *(end for found in pattern.finditer(text) for end in found.span()), len(text)]
    parts = (text[start:end] for start, end in pairwise(ends))
    return tuple((part, bool(number % 2)) for number, part in enumerate(parts) if part)


def pattern_of(phrases: Sequence[str]) -> re.Pattern[str] | None:
    """Between the words of a phrase anything stands that is no letter, as for the index of the search."""
    spelled = (r"\W+".join(map(re.escape, re.findall(r"\w+", phrase))) for phrase in phrases)
    ways = [way for way in spelled if way]
    return re.compile("|".join(ways), re.IGNORECASE) if ways else None


def _pieces(text: str, first: re.Match[str], pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    start, end = max(0, first.start() - _AROUND), min(first.end() + _AROUND, len(text))
    at = start
    for found in pattern.finditer(text, first.start(), end):
        yield f"{'…' if at == start > 0 else ''}{text[at : found.start()]}", False
        yield found[0], True
        at = found.end()
    yield f"{text[at:end]}{'…' if end < len(text) else ''}", False
