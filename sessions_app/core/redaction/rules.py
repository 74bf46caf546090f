"""What a redaction rule is: secrets known by the name of their field, or by their look."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

RULE_NAME = re.compile(r"[a-z][a-z_]{0,31}")


def always(_: object) -> bool:
    return True


def never(_: object) -> bool:
    return False


class Spelled(NamedTuple):
    """A whole document, or a text, as it is spelled: strings are not decoded."""

    text: str
    folded: str
    """In lower case, with 0 for each digit; without dashes, underscores, dots, blanks and backslashes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldRule:
    """Replaces the whole value of fields with these names."""

    name: str
    fields: frozenset[str]
    """Names in snake_case. `x-api-key`, `xApiKey` and `openai_api_key` all match `api_key`."""
    token_fields: frozenset[str] = frozenset()
    """Names that count only as a whole and with a value that looks like a token: `token`."""
    paths: frozenset[tuple[str, ...]] = frozenset()
    """Names in snake_case, each of a field below the one before it; lists between them do not count."""


# Equal only to itself: a hash of the patterns would go over all their code.
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TextRule:
    """Replaces what its patterns find inside strings, keys and log lines.

    A pattern's group `secret`, when it has one, is the part that is replaced. Patterns must be
    linear on any text: bounded repeats, or possessive ones after a start that cannot overlap.
    """

    name: str
    patterns: tuple[re.Pattern[str], ...]
    may_hit: Callable[[str], object] = always
    """A cheap look at the text; false skips the patterns."""
    names: frozenset[str] = frozenset()
    """Names in snake_case, behind which it takes what follows a colon or equals sign."""
    may_hit_in: Callable[[Spelled], object] = always
    """A cheap look at a whole document. False only if it hits in no string of it, however deep, but behind `names`."""
    accepts: Callable[[re.Match[str]], bool] = always
    """A last look at a match, for what a pattern cannot say."""


Rule = FieldRule | TextRule


def check_rule_name(rule: Rule) -> None:
    """A name outside this form would give placeholders that are not known again."""
    if not RULE_NAME.fullmatch(rule.name):
        raise ValueError(f"Rule name {rule.name!r} is not lower-case letters and underscores.")
