"""Two texts by words, with white space as words of its own.

Bounded: texts that are long after their equal ends are set aside, or that share next to nothing,
are shown as whole blocks, and the answer says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from sessions_app.core.compare.sequence import common_subsequence

SegmentKind = Literal["equal", "removed", "added"]

MAX_CHARACTERS = 200_000
"""Of either text, equal ends set aside; beyond it lines are compared and not words."""
MAX_TOKENS = 10_000
MIN_SHARED = 0.15
"""Share of the words that must agree for a comparison by words to be readable."""

_TOKENS = re.compile(r"\r\n|\s|\w+|[^\w\s]")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_WORDLESS = re.compile(r"\W*")
_LOOK_BACK = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    kind: SegmentKind
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TextDifference:
    """Equal and added segments make the right text, equal and removed ones the left."""

    segments: tuple[Segment, ...]
    too_different: bool = False
    """Blocks are shown: the texts share too little, or are too long to compare by words."""


def text_difference(left: str, right: str) -> TextDifference:
    start, tail = _equal_ends(left, right)
    inner_left, inner_right = left[start : len(left) - tail], right[start : len(right) - tail]
    segments, too_different = _inner(inner_left, inner_right)
    around = [("equal", left[:start]), *segments, ("equal", left[len(left) - tail :])]
    return TextDifference(segments=tuple(_joined(around)), too_different=too_different)


Piece = tuple[SegmentKind, str]


def _inner(left: str, right: str) -> tuple[list[Piece], bool]:
    if not left or not right:
        return _block(left, right), False
    if max(len(left), len(right)) <= MAX_CHARACTERS:
        tokens = _TOKENS.findall(left), _TOKENS.findall(right)
        if max(map(len, tokens)) <= MAX_TOKENS:
            return _by_tokens(*tokens)
    return _by_lines(left, right), True


def _by_tokens(left: Sequence[str], right: Sequence[str]) -> tuple[list[Piece], bool]:
    pairs = common_subsequence(left, right).pairs
    if not _is_readable(left, right, [left[i] for i, _ in pairs]):
        return _block("".join(left), "".join(right)), True
    return list(_pieces(left, right, pairs)), False


def _is_readable(left: Sequence[str], right: Sequence[str], shared: Sequence[str]) -> bool:
    """Few words are always readable; of many enough must agree, white space and points aside."""
    words = max(_words(left), _words(right))
    return words <= 20 or _words(shared) >= MIN_SHARED * words


def _words(tokens: Sequence[str]) -> int:
    return sum(not _WORDLESS.fullmatch(token) for token in tokens)


def _by_lines(left: str, right: str) -> list[Piece]:
    """Whole lines, or one block where even lines are too many."""
    lines = _LINES.findall(left), _LINES.findall(right)
    if max(map(len, lines)) > MAX_TOKENS:
        return _block(left, right)
    return list(_pieces(*lines, common_subsequence(*lines).pairs))


def _pieces(left: Sequence[str], right: Sequence[str], pairs: list[tuple[int, int]]) -> Iterator[Piece]:
    i = j = 0
    for a, b in [*pairs, (len(left), len(right))]:
        yield from _block("".join(left[i:a]), "".join(right[j:b]))
        yield "equal", left[a] if a < len(left) else ""
        i, j = a + 1, b + 1


def _block(left: str, right: str) -> list[Piece]:
    return [("removed", left), ("added", right)]


def _joined(pieces: list[Piece]) -> Iterator[Segment]:
    filled = (piece for piece in pieces if piece[1])
    for kind, group in groupby(filled, key=lambda piece: piece[0]):
        yield Segment(kind=kind, text="".join(text for _, text in group))


# --- equal ends --------------------------------------------------------------------------------


def _equal_ends(left: str, right: str) -> tuple[int, int]:
    """Lengths of the equal beginning and end, cut back so that no word is torn."""
    start = _whole_words(left, right, _common_prefix(left, right))
    tail = _common_prefix(left[start:][::-1], right[start:][::-1])
    return start, _whole_words(left[::-1], right[::-1], tail)


def _common_prefix(left: str, right: str) -> int:
    """By halves: comparing slices is quick where a loop over characters is not."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _whole_words(left: str, right: str, length: int) -> int:
    """Back to the last place where both texts have a border between tokens."""
    for cut in range(length, max(length - _LOOK_BACK, -1), -1):
        if _is_border(left, cut) and _is_border(right, cut):
            return cut
    return length


def _is_border(text: str, cut: int) -> bool:
    if cut in (0, len(text)):
        return True
    before, after = text[cut - 1], text[cut]
    if {before, after} == {"\r", "\n"}:
        return False
    return not (_is_word(before) and _is_word(after))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
