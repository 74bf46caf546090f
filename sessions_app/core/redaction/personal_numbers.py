"""Numbers of persons: bank accounts (IBAN), which carry their own check, and US social security numbers."""

import re

from .rules import Spelled, TextRule

IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)(?![A-Za-z0-9])"
)
SSN = re.compile(r"(?<![0-9A-Za-z.-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![0-9A-Za-z-])")
_MAY_BE_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[ A-Z0-9]{11}")
_FOLDED_SSN = "000000000"
_SSN_GAPS = re.compile(r"[0-9]-[0-9]{2}-[0-9]")


def is_iban(text: str) -> bool:
    """ISO 13616: the country and check digits moved to the end, letters as two digits, 1 is left of it by 97."""
    signs = text.replace(" ", "")
    digits = "".join(str(int(sign, 36)) for sign in signs[4:] + signs[:4])
    return 15 <= len(signs) <= 34 and int(digits) % 97 == 1


IBAN_RULE = TextRule(
    name="iban",
    patterns=(IBAN,),
    may_hit=_MAY_BE_IBAN.search,
    may_hit_in=lambda spelled: _MAY_BE_IBAN.search(spelled.text),
    accepts=lambda match: is_iban(match[0]),
)


def _may_be_ssn(spelled: Spelled) -> object:
    return _FOLDED_SSN in spelled.folded and _SSN_GAPS.search(spelled.text)


SSN_RULE = TextRule(
    name="ssn", patterns=(SSN,), may_hit=lambda text: "-" in text and _SSN_GAPS.search(text), may_hit_in=_may_be_ssn
)
