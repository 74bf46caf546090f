"""Where the words of a query stand in a run: a piece of text around the first of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_AROUND = 60
"""Characters on each side."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snippet:
    """`where` is a word for the place, such as `answer`; with a step, one of its steps."""

    where: str
    before: str
    found: str
    after: str
    step: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A text that is looked at."""

    where: str
    text: str | None
    step: int | None = None


def snippet(places: Iterable[Place], phrases: Sequence[str]) -> Snippet | None:
    """The first place that holds a phrase, whatever the case of its letters. None where no place holds one."""
    pattern = _pattern(phrases)
    if pattern is None:
        return None
    for place in places:
        if place.text and (found := pattern.search(place.text)):
            return _cut(place, place.text, found)
    return None


def _pattern(phrases: Sequence[str]) -> re.Pattern[str] | None:
    """Between the words of a phrase anything stands that is no letter, as for the index of the search."""
    spelled = (r"\W+".join(map(re.escape, re.findall(r"\w+", phrase))) for phrase in phrases)
    ways = [way for way in spelled if way]
    return re.compile("|".join(ways), re.IGNORECASE) if ways else None


def _cut(place: Place, text: str, found: re.Match[str]) -> Snippet:
    start, end = found.span()
    before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    return Snippet(
        where=place.where,
        step=place.step,
        before=f"…{before}" if start > _AROUND else before,
        found=found[0],
        after=f"{after}…" if end + _AROUND < len(text) else after,
    )
