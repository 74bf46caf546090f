"""Secrets behind their name in running text: `api_key=...`, `"password": "...` in cut-off JSON.

Text without structure also says `password: required` and `token=self.token`. So a value in quotes
is taken nearly always, and a bare one only when it does not look like a word.
"""

import re
from itertools import groupby
from operator import itemgetter

from .field_names import SECRET_FIELDS
from .rules import TextRule, never
from .text_patterns import TEMPLATE

_HEADERS = frozenset({"authorization", "proxy_authorization", "cookie", "cookies", "set_cookie"})
_NUMBERS = frozenset({"credit_card", "credit_card_number", "card_number", "cvv", "cvc"})
_NAMES = sorted(SECRET_FIELDS - _HEADERS - _NUMBERS, reverse=True)


def _any_name(names: list[str]) -> str:
    """An expression for any of the names, by first letter: half the time of a flat list."""
    return "|".join(
        f"{letter}(?:" + "|".join(name[1:].replace("_", "[_-]?") for name in same_letter) + ")"
        for letter, same_letter in groupby(names, key=itemgetter(0))
    )


NAMED_VALUE = re.compile(
    rf"(?<![^\W_])(?P<name>{_any_name(_NAMES)}|(?<![\w-])token)\\{{0,6}}[\"']?\s{{0,4}}(?:=>|:=|==?|:)\s{{0,4}}"
    # The value is in quotes, in quotes behind backslashes (a text escaped once more), or bare.
    r"(?:(?P<quote>[\"'])|(?P<escaped_quote>\\++[\"']))?"
    r"(?P<secret>"
    r"(?(quote)(?:\\.|(?!(?P=quote))[^\\\r\n])++"
    r"|(?(escaped_quote)(?:(?!(?P=escaped_quote))[^\r\n])++"
    r"|[^\s\"'\\,;&<>(){}\[\]|`]{4,}+)))",
    re.IGNORECASE,
)
COOKIE = re.compile(
    r"(?<!\w)(?:set-)?cookie\\{0,6}[\"']?\s{0,4}:\s{0,4}\\{0,6}[\"']?"
    r"(?P<secret>[\w.-]{1,80}=[^\s\"'\\;]++(?:; ?[\w.-]{1,80}(?:=[^\r\n\"'\\;]*+)?)*+)",
    re.IGNORECASE,
)
CARD_CODE = re.compile(
    r"(?<!\w)(?:cvv|cvc)2?\\{0,6}[\"']?\s{0,4}[:=]\s{0,4}\\{0,6}[\"']?(?P<secret>[0-9]{3,4})(?!\w)",
    re.IGNORECASE,
)

_CARD_CODE_HINT = re.compile("[cC][vV][vVcC]")

_STAND_INS = frozenset(
    {
        "string",
        "str",
        "bytes",
        "number",
        "integer",
        "int",
        "boolean",
        "bool",
        "object",
        "array",
        "null",
        "none",
        "nil",
        "undefined",
        "true",
        "false",
        "required",
        "optional",
        "secret",
        "password",
        "passwd",
        "token",
        "api_key",
        "apikey",
        "key",
        "your_api_key",
        "your-api-key",
    }
)
_NOT_A_WORD = re.compile(r"[0-9!#$%^*~+@]")
_NAME_ENDINGS = sorted({name[-3:] for name in SECRET_FIELDS} | {"ken"})
_LAST_SIGNS = "".join(sorted({ending[-1] for ending in _NAME_ENDINGS}))


def _behind_name(gap: int) -> str:
    """Looks back from a colon over so many signs for the end of a name; its last sign first."""
    between = rf"[\\\"'\s]{{{gap}}}[:=]"
    return rf"(?<=[{_LAST_SIGNS}]{between})(?<=(?:{'|'.join(_NAME_ENDINGS)}){between})"


# A search for the names themselves looks at every letter; one for what follows them is many times
# faster. Between the two stand at most six backslashes, a quote and four blanks.
_AFTER_NAME = re.compile("[:=](?:" + "|".join(map(_behind_name, range(12))) + ")", re.IGNORECASE)


def _names_something(text: str) -> bool:
    return _AFTER_NAME.search(text) is not None


def _is_secret_value(match: re.Match[str]) -> bool:
    value = match["secret"]
    name = match["name"].lower()
    if value.lower() == name or value.lower() in _STAND_INS or TEMPLATE.fullmatch(value):
        return False
    if name == "token" and (len(value) < 8 or value.isdigit()):
        return False
    if match["quote"] or match["escaped_quote"]:
        return len(value) >= 3
    in_address = match.string[max(0, match.start() - 1) : match.start()] in ("?", "&")
    return in_address or _NOT_A_WORD.search(value) is not None


NAMED_VALUE_RULE = TextRule(
    name="secret",
    patterns=(NAMED_VALUE,),
    may_hit=_names_something,
    names=frozenset(_NAMES) | {"token"},
    may_hit_in=never,
    accepts=_is_secret_value,
)
COOKIE_RULE = TextRule(
    name="secret",
    patterns=(COOKIE,),
    may_hit=lambda text: "cookie" in text.lower(),
    names=frozenset({"cookie"}),
    may_hit_in=never,
)
CARD_CODE_RULE = TextRule(
    name="secret",
    patterns=(CARD_CODE,),
    may_hit=_CARD_CODE_HINT.search,
    names=frozenset({"cvv", "cvc", "cvv2", "cvc2"}),
    may_hit_in=never,
)
