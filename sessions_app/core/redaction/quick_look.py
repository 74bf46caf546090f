"""A quick look at a whole document: most hold nothing that any rule could hit, and need not be read token by token.

It looks at the document as it is spelled, with the JSON in its strings and all escapes. Rules look for plain letters,
digits and signs. These stand side by side in a string, however deep it lies, only where they do in the document, or
where one is spelled like `\\u0041`: such a document is in doubt and read in full. So is one with the few other letters
that equal one of a to z when case is ignored.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase

import msgspec

from .rare_signs import finder
from .rules import Rule, Spelled, TextRule, always

_FOLDED = bytes.maketrans(f"{ascii_uppercase}123456789".encode(), f"{ascii_lowercase}000000000".encode())
_LEFT_OUT = b"-_. \\"
_PLAIN_NAME = re.compile("[a-z0-9_]*[a-z0-9][a-z0-9_]*")
_BEHIND_NAME = r"(?:[nrtf'\x00-\x20\x7f-\xff]|u[0a-f]{4})*+[\":=]"
"""The quote that ends a name, or a colon or equals sign behind blanks and quotes. Of escapes the backslash is gone."""
_ALSO_READ = frozenset({"base64"})
"""Fields in which text is hidden from a look at the document."""
_IN_DOUBT = re.compile(r"\\u(?:00(?:2[0-589a-fA-F]|3[0-9abdfABDF]|[4-7])|013[01]|017[fF]|212[aA])")
"""Escapes of plain signs, but for `<`, `>`, `&` and `'`, which some always escape and no rule needs."""
_ALIKE = tuple(letter.encode() for letter in "\u0130\u0131\u017f\u212a")
_check_json = msgspec.json.Decoder(msgspec.Raw).decode


class QuickLook:
    """What some rules look for, put together for searching."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        names = _ALSO_READ.union(*map(_names_of, rules))
        self._looks = [rule.may_hit_in for rule in rules if isinstance(rule, TextRule)]
        plain = {name for name in names if _PLAIN_NAME.fullmatch(name)}
        if plain != names:
            self._looks.append(always)
        self._has_name = finder(_shortest({_folded(name.encode()) for name in plain}), _BEHIND_NAME)

    def finds_none(self, text: str) -> bool:
        """Whether it is certain that no rule hits anything in the text, nor in its strings if it is JSON."""
        return self._finds_none(text, text.encode("utf-8", "surrogatepass"))

    def finds_none_in_json(self, text: str, document: bytes) -> bool:
        """The same for a document and its text; nothing is certain when it is no JSON."""
        return self._finds_none(text, document) and _is_json(document)

    def _finds_none(self, text: str, content: bytes) -> bool:
        spelled = Spelled(text, _folded(content))
        return not (
            self._has_name(spelled.folded)
            or any(may_hit_in(spelled) for may_hit_in in self._looks)
            or _IN_DOUBT.search(text)
            or (not text.isascii() and any(letter in content for letter in _ALIKE))
        )


@lru_cache(maxsize=64)
def quick_look(rules: tuple[Rule, ...]) -> QuickLook:
    """The same one for the same rules, as it takes longer to make than a document to look at."""
    return QuickLook(rules)


def _names_of(rule: Rule) -> frozenset[str]:
    if isinstance(rule, TextRule):
        return rule.names
    return rule.fields.union(rule.token_fields, (path[-1] for path in rule.paths))


def _folded(content: bytes) -> str:
    return content.translate(_FOLDED, _LEFT_OUT).decode("latin-1")


def _shortest(names: set[str]) -> set[str]:
    """Without those that end in another one: where they stand the other does."""
    return {name for name in names if not any(name.endswith(other) for other in names - {name})}


def _is_json(document: bytes) -> bool:
    try:
        _check_json(document)
    except (ValueError, RecursionError):
        return False
    return True
