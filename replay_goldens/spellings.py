"""Recorded values in the other spellings in which an answer may tell them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import normalize

Scalar = str | int | float

_REPLACED = (
    (re.compile("[\u00b2\u00b3\u00b9\u2070-\u209c]"), " "),
    (re.compile("[\u2018\u2019\u02bc\u00b4]"), "'"),
    (re.compile("[\u00ad\u061c\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]"), ""),
    (re.compile("[\u2010-\u2015\u2043\u2212\ufe58\ufe63\uff0d]"), "-"),
    (re.compile("\u00df"), "ss"),
    (re.compile("\u1e9e"), "SS"),
)
"""Footnote marks, apostrophes, characters without width, hyphens, and the letter that capitals write as two."""
_MARKDOWN = re.compile(r"(?<!\d)\*+|\*+(?!\d)|`+|~~|\\(?=[^\w\s])|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
_AROUND = re.compile(r"^\W+|\W+$")
_MONEY = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)\.\d\d")
_MARKED = re.compile(r"\d+\.\d+")
"""How a number is written that is neither so large nor so small that it needs an exponent."""
_DATE = re.compile(r"\d{4}([-./ ])\d\d\1\d\d|\d\d([-./ ])\d\d\2\d{4}")
_GROUPINGS = (("", "[.,]"), (",", r"\."), (".", ","), ("'", "[.,]"), (" ", "[.,]"))
"""What stands between thousands, and what then stands before the decimals."""
_BETWEEN = r"[ ./()'-]{0,2}"
"""What may stand between the characters of a long code: a phone number, an IBAN, a card."""


def plain(text: str) -> str:
    """A text without Markdown marks, in one Unicode form, with one kind of space, hyphen and apostrophe."""
    if not text.isascii():
        for pattern, replacement in _REPLACED:
            text = pattern.sub(replacement, text)
        text = normalize("NFKC", text)
    return " ".join(_MARKDOWN.sub("", text).split())


def core(value: Scalar) -> str:
    """A value without what stands around it: `#4421` is told by 4421."""
    return _AROUND.sub("", plain(str(value)))


def key_of(value: Scalar) -> str:
    """The same for all spellings of a value."""
    amount, word = _amount(value), core(value)
    if amount is not None:
        return f"{amount[0]}.{amount[1][0]}".rstrip("0").rstrip(".")
    return _squeezed(word) if _is_long_code(word) else word.casefold()


class ToldText:
    """A text, and where it tells a value: as a word of its own, so that order 442 is not told by 4421."""

    def __init__(self, text: str) -> None:
        self._text = plain(text)
        self._characters = _squeezed(self._text)

    def places(self, value: Scalar) -> Iterator[tuple[int, int]]:
        """Where it begins and ends."""
        word, amount = core(value), _amount(value)
        if not word or _squeezed(word if amount is None else amount[0]) not in self._characters:
            return
        for found in re.finditer(_pattern(word, amount), self._text, re.IGNORECASE):
            if _is_spelling(found.group(), word):
                yield found.span()


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]", "", text).casefold()


def _is_spelling(found: str, word: str) -> bool:
    """A single word may be a name or any word: "will" is nobody called Will. A date is no other number."""
    if word.isalpha() and found != word:
        return len(word) > 3 and not found.islower()
    return _DATE.fullmatch(found) is None or _DATE.fullmatch(word) is not None


def _is_long_code(word: str) -> bool:
    characters = _squeezed(word)
    is_long = len(characters) >= 7 and len(word) <= 64 and sum(map(str.isdecimal, characters)) >= 5
    return is_long and not _DATE.fullmatch(word)


def _pattern(word: str, amount: Amount | None) -> str:
    told = _amount_pattern(*amount) if amount else rf"(?<!\w){re.escape(word)}(?!\w)"
    if not _is_long_code(word) or (amount and not word.isdecimal()):
        return told
    spaced = _BETWEEN.join(_squeezed(word))
    return rf"{told}|(?<!\w)(?<!\d[ ./'-]){spaced}(?!\w)(?![ ./'-]\d)"


Amount = tuple[str, list[str]]
"""The digits before the mark, and those that may follow it."""


def _amount(value: Scalar) -> Amount | None:
    """None of what is no amount: digits in a text are the name of something."""
    if isinstance(value, str):
        word = core(value)
        whole, _, decimals = word.replace(",", "").partition(".")
        return (whole, [decimals]) if _MONEY.fullmatch(word) else None
    if isinstance(value, int):
        return str(abs(value)), ["0", "00"]
    return _broken(abs(value)) if _MARKED.fullmatch(repr(abs(value))) else None


def _broken(number: float) -> Amount:
    whole, _, decimals = repr(number).partition(".")
    rounded, _, cents = f"{number:.2f}".partition(".")
    return whole, [decimals, decimals.ljust(2, "0"), *([cents] if rounded == whole else [])]


def _amount_pattern(whole: str, decimals: list[str]) -> str:
    is_round = not any(each.strip("0") for each in decimals)
    needed = "?" if is_round and len(whole) > 2 else ""
    told = "|".join(
        f"{re.escape(between).join(_thousands(whole))}(?:{_decimals(mark, whole, decimals)}){needed}"
        for between, mark in _GROUPINGS
    )
    before = r"(?<!\d[.,'])" if len(whole) == 3 else r"(?<!\d\.)"
    after = r"(?![.,']\d{1,3}(?!\d))" if is_round else r"(?![.,']\d)"
    return rf"(?<!\w){before}(?:{told})(?!\w){after}"


def _decimals(mark: str, whole: str, decimals: list[str]) -> str:
    """`1,234` is a thousand and more, and not 1.234."""
    marks = {each: r"\." if len(each) == 3 and len(whole) <= 3 else mark for each in decimals}
    return "|".join(f"{mark}{each}" for each, mark in marks.items())


def _thousands(whole: str) -> list[str]:
    first = len(whole) % 3 or 3
    return [whole[:first], *(whole[at : at + 3] for at in range(first, len(whole), 3))]
