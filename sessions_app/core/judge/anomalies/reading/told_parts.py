"""Texts that say of themselves that they are a part, as in `[showing lines 1-30 of 4,812]`."""

from __future__ import annotations

import re

_MARKS = 200
"""Characters at the beginning and at the end in which such a line may stand."""
_NUMBER = r"(\d{1,3}(?:[,.]\d{3})+|\d+)"
_OF = r"\s*(?:of|out of|/|von|de|sur|di|van)\s*"
_RANGE = re.compile(rf"^\W*(?:[^\W\d]+\W+){{0,3}}?{_NUMBER}\s*[-–]\s*{_NUMBER}{_OF}{_NUMBER}(?:\W+[^\W\d]+){{0,2}}\W*$")
_SHOWN = re.compile(rf"^\W*(?:showing|shown|displaying|first)\W+{_NUMBER}{_OF}{_NUMBER}(?:\W+[^\W\d]+){{0,2}}\W*$")
_CUT = re.compile(r"^\W*(?:[^\W\d]+\W+){0,2}truncated(?:\W+\w+){0,4}\W*$")


def part_in_words(text: str) -> str | None:
    """ "lines 1-30 of 4,812", without the brackets; None for what ends where it says, or does not say."""
    lines = text[:_MARKS].split("\n")[0], text[-_MARKS:].rstrip().split("\n")[-1]
    found = next((line.strip(" \t\r.…[](){}*-") for line in lines if _is_part(line.strip().lower())), None)
    if found is None:
        return None
    return _VERB.sub("", found) if re.search(r"\d", found) else "a part"


_VERB = re.compile(r"(?:showing|shown|displaying)\W+", re.IGNORECASE)


def _is_part(line: str) -> bool:
    if (found := _RANGE.match(line)) is not None:
        first, last, total = map(_whole, found.groups())
        return first <= last < total
    if (found := _SHOWN.match(line)) is not None:
        shown, total = map(_whole, found.groups())
        return shown < total
    return _CUT.match(line) is not None


def _whole(number: str) -> int:
    return int(number.replace(",", "").replace(".", ""))
