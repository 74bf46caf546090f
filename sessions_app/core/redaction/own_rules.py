"""What a project adds to the built-in rules, and which kinds of personal data it has taken out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

import re2

from .builtin import BUILT_IN_RULES
from .field_names import fold_name
from .persons import IPV4_RULE, PHONE_RULE
from .rules import RULE_NAME, FieldRule, Rule, TextRule

KINDS = {
    "email": "E-mail addresses",
    "card": "Payment cards",
    "card_code": "Card codes (CVC)",
    "iban": "Bank accounts (IBAN)",
    "ssn": "US social security numbers",
    "phone": "Phone numbers in international form, +49 30 1234567",
    "ip_address": "IP addresses (IPv4)",
}
"""Rules that a project may switch; keys and passwords are always taken out."""
OFF_AT_FIRST = frozenset({"phone", "ip_address"})
ON_AT_FIRST = tuple(name for name in KINDS if name not in OFF_AT_FIRST)
OWN_FIELD = "own_field"
_RULES: tuple[Rule, ...] = (*BUILT_IN_RULES, PHONE_RULE, IPV4_RULE)
_TAKEN = {rule.name for rule in _RULES} | {OWN_FIELD}
_MOST, _LONGEST = 50, 500
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


class BadRule(ValueError):
    """A rule that cannot be kept, in words for whoever wrote it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnRules:
    """One project's."""

    fields: tuple[str, ...] = ()
    """Names of fields whose values are removed wherever they occur, and paths such as `customer.address`."""
    patterns: tuple[tuple[str, str], ...] = ()
    """Names, which the placeholders carry, with their regular expressions (RE2)."""
    kinds: tuple[str, ...] = ON_AT_FIRST

    @classmethod
    def from_text(cls, text: str) -> OwnRules:
        """Of what `to_text` wrote; of nothing those that a project begins with."""
        said = json.loads(text) if text else {}
        patterns = tuple((name, pattern) for name, pattern in said.get("patterns", ()))
        return cls(fields=tuple(said.get("fields", ())), patterns=patterns, kinds=tuple(said.get("kinds", ON_AT_FIRST)))

    def to_text(self) -> str:
        return json.dumps({"fields": self.fields, "patterns": self.patterns, "kinds": self.kinds})


@lru_cache(maxsize=64)
def rules_of(own: OwnRules) -> tuple[Rule, ...]:
    """All that apply; the project's own come first, so their names stand where they overlap with others."""
    paths = frozenset(path for path in map(_path, own.fields) if len(path) > 1)
    fields = FieldRule(name=OWN_FIELD, fields=frozenset(map(fold_name, own.fields)), paths=paths)
    patterns = [_pattern_rule(name, pattern) for name, pattern in own.patterns]
    others = [rule for rule in _RULES if rule.name not in KINDS or rule.name in own.kinds]
    return (*([fields] if own.fields else []), *patterns, *others)


def _path(field: str) -> tuple[str, ...]:
    return tuple(fold_name(name) for name in field.split("."))


def _pattern_rule(name: str, pattern: str) -> TextRule:
    return TextRule(name=name, patterns=(_compiled(pattern),), accepts=lambda match: match.end() > match.start())


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled: re.Pattern[str] = re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        reason = error.args[0]
        words = reason.decode() if isinstance(reason, bytes) else reason
        raise BadRule(f"is not a regular expression (RE2): {words}.") from None
    return compiled


# --- as they are typed -------------------------------------------------------------------------


def read_fields(text: str) -> tuple[str, ...]:
    """One on each line. Raises `BadRule`."""
    names = _lines(text)
    for name in names:
        if not all(_path(name)) or len(name) > 100:
            raise BadRule(f"{name[:40]!r} is not a valid field name.")
    return names


def read_patterns(text: str) -> tuple[tuple[str, str], ...]:
    """`name: pattern` on each line. Raises `BadRule`."""
    return tuple(map(_read_pattern, _lines(text)))


def _read_pattern(line: str) -> tuple[str, str]:
    name, colon, pattern = (part.strip() for part in line.partition(":"))
    if not colon or not pattern or not RULE_NAME.fullmatch(name):
        raise BadRule(f"{line[:40]!r}: write a name in lower-case letters, a colon and the pattern.")
    if name in _TAKEN:
        raise BadRule(f"{name!r} is the name of a built-in rule.")
    try:
        _compiled(pattern)
    except BadRule as bad:
        raise BadRule(f"{name!r} {bad}") from None
    return name, pattern


def _lines(text: str) -> tuple[str, ...]:
    lines = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    if len(lines) > _MOST or any(len(line) > _LONGEST for line in lines):
        raise BadRule(f"At most {_MOST} lines of {_LONGEST} characters are allowed.")
    return lines
