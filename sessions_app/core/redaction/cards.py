"""Payment card numbers: issuer prefixes, lengths and the Luhn check.

A number that only looks like a card is usually an order number or an id, so all three must fit.
"""

import re

from .rules import Spelled, TextRule

_NOT_INSIDE = r"(?<![0-9A-Za-z_+][2-6])(?<![0-9][-.][2-6])"
_BEHIND_ESCAPE = r"(?<=\\[bfnrt][2-6])|(?<=\\u[0-9a-fA-F]{4}[2-6])|(?<=\\u[0-9a-fA-F]{4}[-.][2-6])"
_DIGITS = (
    r"(?:[0-9]{12,18}"
    r"|[0-9]{3}(?P<gap>[ -])(?:[0-9]{4}(?P=gap)[0-9]{4}(?P=gap)[0-9]{1,4}(?:(?P=gap)[0-9]{1,3})?"
    r"|[0-9]{6}(?P=gap)[0-9]{4,5}))"
    r"(?![0-9A-Za-z_])(?![-.][0-9])"
)
# The first digit comes first because the search for it is fast; then what must not precede it.
CARD = re.compile(f"[2-6]{_NOT_INSIDE}{_DIGITS}")
SPELLED_CARD = re.compile(f"[2-6](?:{_NOT_INSIDE}|{_BEHIND_ESCAPE}){_DIGITS}")
"""The same in a string that is not decoded: the end of an escape looks like a letter or digit."""

_MANY_DIGITS = "0" * 13
"""As they look folded, with or without gaps."""

ISSUERS = (
    # first prefix, last prefix, lengths
    ("4", "4", (13, 16, 19)),  # Visa
    ("51", "55", (16,)),  # Mastercard
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),  # American Express
    ("37", "37", (15,)),
    ("300", "305", (14,)),  # Diners Club
    ("3095", "3095", (14,)),
    ("36", "36", (14,)),
    ("38", "39", (14,)),
    ("6011", "6011", (16, 19)),  # Discover
    ("644", "659", (16, 19)),
    ("3528", "3589", (16, 19)),  # JCB
    ("62", "62", (16, 17, 18, 19)),  # UnionPay
    ("2200", "2204", (16,)),  # Mir
    ("5018", "5018", (16, 18, 19)),  # Maestro
    ("5020", "5020", (16, 18, 19)),
    ("5038", "5038", (16, 18, 19)),
    ("5893", "5893", (16, 18, 19)),
    ("6304", "6304", (16, 18, 19)),
    ("6759", "6763", (16, 18, 19)),
)


def is_card_number(digits: str) -> bool:
    return (
        any(first <= digits[: len(first)] <= last and len(digits) in lengths for first, last, lengths in ISSUERS)
        and _passes_luhn(digits)
        and not _is_article_number(digits)
    )


def _passes_luhn(digits: str) -> bool:
    values = [int(digit) for digit in reversed(digits)]
    doubled = [value * 2 - 9 if value > 4 else value * 2 for value in values[1::2]]
    return (sum(values[::2]) + sum(doubled)) % 10 == 0


def _is_article_number(digits: str) -> bool:
    """Bar codes (EAN-13) from Germany and Japan begin like the old 13-digit Visa numbers."""
    if len(digits) != 13:
        return False
    values = [int(digit) for digit in digits]
    return (sum(values[::2]) + 3 * sum(values[1::2])) % 10 == 0


def _is_card(match: re.Match[str]) -> bool:
    return is_card_number(re.sub("[ -]", "", match[0]))


def _may_hit_in(spelled: Spelled) -> bool:
    return _MANY_DIGITS in spelled.folded and SPELLED_CARD.search(spelled.text) is not None


CARD_RULE = TextRule(name="card", patterns=(CARD,), accepts=_is_card, may_hit_in=_may_hit_in)
