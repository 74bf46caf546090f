"""The query language of lists: text in, `Query` out. What it means for rows is in queries/search.py.

    status:error tool:lookup_* -user:u_7710 took:>30s has:anomaly refund policy

Terms are joined by AND; `status:(error OR cut_off)` is any of them. Words without a key are searched
for in any order, words in quotes as a phrase. A part that cannot be understood is refused; nothing is dropped quietly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, cast

from sessions_app.core.errors import QueryError

Comparison = Literal["=", ">", ">=", "<", "<="]


@dataclass(frozen=True, kw_only=True, slots=True)
class TextValue:
    """A text to be equal to; `pattern` where it holds a `*` that stands for any characters."""

    text: str
    is_pattern: bool = False

    @property
    def pieces(self) -> list[str]:
        """What stands between the stars."""
        return self.text.split("*")


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberValue:
    """A number to compare with; durations are in milliseconds."""

    comparison: Comparison
    number: float


Value = TextValue | NumberValue


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """One condition: any of the values, or none of them when negated."""

    key: str
    values: tuple[Value, ...]
    is_negated: bool
    part: str
    """The term as it was written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    terms: tuple[Term, ...] = ()
    phrases: tuple[str, ...] = ()
    """The words without a key, each of which has to be there; what stood in quotes is one."""
    parts: tuple[str, ...] = ()
    """All parts as they were written; joined by spaces they are the query again."""

    def has_key(self, key: str) -> bool:
        return any(term.key == key for term in self.terms)

    def without(self, part: str) -> str:
        """The text of the query when one part is left out."""
        rest = list(self.parts)
        rest.remove(part)
        return " ".join(rest)


MAX_LENGTH = 2000
MAX_PARTS = 40

KIT_KEYS = (
    "ids", "identity", "input", "instructions", "tool_schemas", "retrieval", "model", "sampling", "tool_io",
    "timestamps", "commit", "flags",
)  # fmt: skip
HAS = ("error", "anomaly", "replay", "commit", "user", "tenant", "cold", "output", "tool")
CHOICES: dict[str, tuple[str, ...]] = {
    "status": ("ok", "error", "cut_off", "running"),
    "kind": ("model", "tool", "retrieval", "agent", "other"),
    "verdict": (
        "replayable", "replayable_to_step", "cold", "reproduced", "diverged", "ran_past_recording",
        "answers_left_over", "fixture_missing", "could_not_run", "cancelled", "unknown_from_step",
    ),
    "replay": ("ready", "partial", "cold"),
    "cold": ("yes", "no"),
    "missing": KIT_KEYS,
    "origin": ("recorded", "replay", "fork"),
    "has": HAS,
}  # fmt: skip
TEXTS = (
    "tool", "model", "provider", "agent", "user", "tenant", "session", "run", "version", "commit", "anomaly", "reason",
    "group", "tag",
)  # fmt: skip
NUMBERS = ("steps", "tokens", "anomalies")
DURATIONS = ("took",)
KEYS = (*CHOICES, *TEXTS, *NUMBERS, *DURATIONS)

_UNITS = {"ms": 1.0, "s": 1000.0, "m": 60_000.0, "min": 60_000.0, "h": 3_600_000.0}
_PART = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\((?:"(?:[^"\\]|\\.)*"|[^()"])*\)|[^\s"()])+')
_KEY = re.compile(r"(-?)([A-Za-z_][\w.]*):(.*)", re.DOTALL)
_COMPARED = re.compile(r"(>=|<=|>|<|=)?(-?\d+(?:\.\d+)?)([A-Za-z]*)")
_OR = re.compile(r"\s+OR\s+")


def parse_query(text: str) -> Query:
    if len(text) > MAX_LENGTH:
        raise QueryError(f"A query can have at most {MAX_LENGTH:,} characters; this one has {len(text):,}.", part=text)
    if "\x00" in text:
        raise QueryError("A query cannot contain a NUL character.", part="\x00")
    parts = [part for part in _split(text) if part != "AND"]
    if len(parts) > MAX_PARTS:
        raise QueryError(f"A query can have at most {MAX_PARTS} parts.", part=parts[MAX_PARTS])
    terms: list[Term] = []
    words: list[str] = []
    wrong: list[QueryError] = []
    for part in parts:
        try:
            if (term := _term(part)) is not None:
                terms.append(term)
            else:
                words.append(_word(part))
        except QueryError as error:
            wrong.append(error)
    if wrong:
        wrong[0].others = tuple(wrong[1:])
        raise wrong[0]
    return Query(terms=tuple(terms), phrases=_phrases(words, parts), parts=tuple(parts))


def _split(text: str) -> Iterator[str]:
    """Parts between spaces; quotes and parentheses keep theirs."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = _PART.match(text, at)
        if found is None or (found.end() < len(text) and not text[found.end()].isspace()):
            part = text[at:].split("\n")[0]
            raise QueryError(f"{_unclosed(text[at:])} is not closed, or is in the wrong place.", part=part)
        yield found.group()
        at = found.end()


def _unclosed(text: str) -> str:
    return "The quote" if text.count('"') % 2 else "A parenthesis"


def _term(part: str) -> Term | None:
    """None for words without a key."""
    if part == "OR":
        raise QueryError("OR must be in parentheses: status:(error OR ok).", part=part)
    found = _KEY.fullmatch(part)
    if found is None:
        return None
    minus, key, rest = found.groups()
    key = key.lower()
    if key not in KEYS:
        near = get_close_matches(key, KEYS, n=1)
        instead = f"{minus or ''}{near[0]}:{rest}" if near else ""
        raise QueryError(_unknown_key(key, near), part=part, instead=instead)
    if not rest:
        raise QueryError(f"A value is missing: try {EXAMPLES[key]}.", part=part)
    values = tuple(_value(key, text, part) for text in _alternatives(rest, part))
    return Term(key=key, values=values, is_negated=bool(minus), part=part)


def _unknown_key(key: str, near: list[str]) -> str:
    if near:
        return f"There is no key {key}: did you mean {near[0]}:?"
    return f'There is no key {key}. Put it in "quotes" to search for these words.'


def _alternatives(rest: str, part: str) -> list[str]:
    if not rest.startswith("("):
        if "(" in rest and not rest.startswith('"'):
            raise QueryError("The parenthesis must come right after the colon.", part=part)
        return [rest]
    if not rest.endswith(")"):
        raise QueryError("Nothing may follow the closing parenthesis.", part=part)
    texts = [text.strip() for text in _OR.split(rest[1:-1].strip())]
    for text in texts:
        if not text or (" " in text and not text.startswith('"')):
            raise QueryError("Within parentheses, values are joined by OR: (a OR b).", part=part)
    return texts


def _value(key: str, text: str, part: str) -> Value:
    is_quoted = text.startswith('"')
    plain = _unquote(text) if is_quoted else text
    if key in CHOICES:
        return TextValue(text=_choice(key, plain, part))
    if key in NUMBERS or key in DURATIONS:
        return _compared(key, plain, part)
    if plain[:1] in "<>" and not is_quoted:
        raise QueryError(f"{key} is text; only {', '.join((*NUMBERS, *DURATIONS))} can be compared.", part=part)
    return TextValue(text=plain, is_pattern="*" in plain and not is_quoted)


def _choice(key: str, text: str, part: str) -> str:
    wanted = text.lower().replace("-", "_")
    if wanted in CHOICES[key]:
        return wanted
    near = get_close_matches(wanted, CHOICES[key], n=1) or [each for each in CHOICES[key] if each == "error"]
    instead = part.replace(text, near[0]) if near else ""
    raise QueryError(f"{key} is one of {', '.join(CHOICES[key])}.", part=part, instead=instead)


def _compared(key: str, text: str, part: str) -> NumberValue:
    found = _COMPARED.fullmatch(text)
    if found is None:
        raise QueryError(f"{key} is compared with a number, such as {EXAMPLES[key]}.", part=part)
    comparison, digits, unit = found.groups()
    return NumberValue(comparison=cast(Comparison, comparison or "="), number=float(digits) * _factor(key, unit, part))


def _factor(key: str, unit: str, part: str) -> float:
    if key not in DURATIONS:
        if unit:
            raise QueryError(f"{key} has no unit.", part=part)
        return 1.0
    if unit not in _UNITS:
        raise QueryError(f"{key} needs a unit: ms, s, m or h, such as {EXAMPLES[key]}.", part=part)
    return _UNITS[unit]


def _word(part: str) -> str:
    if part.startswith("(") or part.endswith(")"):
        raise QueryError('A parenthesis follows a key, as in status:(error OR ok); or put it in "quotes".', part=part)
    if len(part) > 1 and part.startswith("-") and not part[1].isdigit():
        raise QueryError("A minus excludes key:value, such as -user:u_7710; words cannot be excluded.", part=part)
    return _unquote(part) if part.startswith('"') else part


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text.removeprefix('"').removesuffix('"'), flags=re.DOTALL)


def _phrases(words: list[str], parts: list[str]) -> tuple[str, ...]:
    """Signs between words are not searched for."""
    phrases = tuple(word for word in words if any(character.isalnum() for character in word))
    if words and not phrases:
        raise QueryError("There is no letter or digit to search for.", part=next(p for p in parts if _term(p) is None))
    return phrases


def quoted(value: str) -> str:
    """A value as it has to be written after a key, to be taken as it is."""
    if re.fullmatch(r"[\w./@+-]+", value) and not value.startswith("-"):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


EXAMPLES: dict[str, str] = {
    "status": "status:error",
    "tool": "tool:lookup_*",
    "kind": "kind:retrieval",
    "model": "model:gpt-4o*",
    "provider": "provider:openai",
    "agent": "agent:order-lookup",
    "user": "user:u_7710",
    "tenant": "tenant:t_north",
    "session": "session:chat_7710*",
    "run": "run:r_8821",
    "version": "version:v1",
    "commit": "commit:9f2c41d",
    "verdict": "verdict:reproduced",
    "replay": "replay:ready",
    "cold": "cold:yes",
    "missing": "missing:commit",
    "origin": "origin:replay",
    "steps": "steps:>20",
    "took": "took:>30s",
    "tokens": "tokens:>10000",
    "has": "has:anomaly",
    "reason": 'reason:"index was rebuilt"',
    "group": "group:3f9c02ab17",
    "tag": "tag:refund",
    "anomaly": "anomaly:duplicate_call",
    "anomalies": "anomalies:>2",
}
"""One working part for each key."""
