"""Edits: spans of a text and what replaces them.

A list of edits is sorted and does not overlap. Positions are those of the text before any edit, so
that everything outside the edits stays as it was, byte for byte.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple


class Edit(NamedTuple):
    """One replaced span."""

    start: int
    end: int
    text: str
    rules: tuple[str, ...]
    """Names of the rules that hit inside, one for each hit."""


ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|.)", re.DOTALL)
"""One escape of a JSON string; a surrogate pair is one, as it decodes to one character."""


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    pieces: list[str] = []
    position = 0
    for edit in edits:
        pieces += text[position : edit.start], edit.text
        position = edit.end
    pieces.append(text[position:])
    return "".join(pieces)


def shift_edits(edits: Iterable[Edit], by: int) -> list[Edit]:
    return [Edit(start + by, end + by, text, rules) for start, end, text, rules in edits]


def compose_edits(first: Sequence[Edit], then: Sequence[Edit]) -> list[Edit]:
    """One list that does what `first` and then `then` (in positions after `first`) do."""
    result: list[Edit] = []
    moved = 0  # how far a position after `first` lies behind the same place before it
    index = 0
    for edit in then:
        while index < len(first) and _end_after(first[index], moved) <= edit.start:
            moved = _moved_past(first[index], moved)
            result.append(first[index])
            index += 1
        start, end = edit.start + moved, edit.end + moved
        while index < len(first) and first[index].start - moved < edit.end:
            start = min(start, first[index].start)
            covered_to = max(_end_after(first[index], moved), edit.end)
            moved = _moved_past(first[index], moved)
            end = covered_to + moved
            index += 1
        result.append(Edit(start, end, edit.text, edit.rules))
    return result + list(first[index:])


def _end_after(edit: Edit, moved: int) -> int:
    return edit.start - moved + len(edit.text)


def _moved_past(edit: Edit, moved: int) -> int:
    return moved + (edit.end - edit.start) - len(edit.text)


def escape_edits(raw: str, edits: Sequence[Edit]) -> list[Edit]:
    """Edits of a decoded JSON string as edits of its raw spelling between the quotes."""
    if not edits:
        return []
    escapes = list(ESCAPE.finditer(raw))
    shrunk = [0, *accumulate(found.end() - found.start() - 1 for found in escapes)]
    decoded_at = [found.start() - before for found, before in zip(escapes, shrunk, strict=False)]

    def raw_position(position: int) -> int:
        return position + shrunk[bisect_left(decoded_at, position)]

    return [Edit(raw_position(edit.start), raw_position(edit.end), _escape(edit.text), edit.rules) for edit in edits]


def _escape(text: str) -> str:
    """Replacements hold no control characters, so quotes and backslashes are all there is."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
