"""Comparing a value that was seen with what a check says: `equals`, `contains`, `more_than` …"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

from replay_goldens.patterns import compiled
from replay_goldens.reading import CheckFields
from replay_goldens.trace import Json
from replay_goldens.values import as_text, parsed, same, short


@dataclass(frozen=True)
class Comparison:
    """One of the ways in which a value may be held against another."""

    words: str
    """To stand behind the name of what is compared, such as `contains "refund"`."""
    holds: Callable[[Json], bool]
    name: str
    value: Json

    def to_json(self) -> dict[str, Json]:
        return {self.name: self.value}


def read_comparison(fields: CheckFields, names: tuple[str, ...]) -> Comparison:
    """The one that the check names, of those it may have. Raises `CheckError`."""
    name = fields.one_of(names)
    return _READERS[name](fields, name)


def _equals(fields: CheckFields, name: str) -> Comparison:
    """A text that spells JSON may stand for what it spells."""
    wanted = fields.json(name)

    def holds(value: Json) -> bool:
        return same(value, wanted) or same(parsed(value), wanted)

    return Comparison(words=f"is {_quoted(wanted)}", holds=holds, name=name, value=wanted)


def _contains(fields: CheckFields, name: str) -> Comparison:
    """Upper and lower case are the same. Of a value that is no text, its JSON is looked at."""
    wanted = fields.text(name)
    return Comparison(
        words=f"contains {_quoted(wanted)}", holds=lambda value: _has(value, wanted), name=name, value=wanted
    )


def _not_contains(fields: CheckFields, name: str) -> Comparison:
    wanted = fields.text(name)
    return Comparison(
        words=f"does not contain {_quoted(wanted)}",
        holds=lambda value: not _has(value, wanted),
        name=name,
        value=wanted,
    )


def _contains_any(fields: CheckFields, name: str) -> Comparison:
    wanted = fields.texts(name)
    return Comparison(
        words=f"contains {' or '.join(map(_quoted, wanted))}",
        holds=lambda value: any(_has(value, each) for each in wanted),
        name=name,
        value=list(wanted),
    )


def _matches(fields: CheckFields, name: str) -> Comparison:
    pattern = fields.text(name)
    search = compiled(pattern, field=fields.place(name))
    return Comparison(words=f"matches {pattern}", holds=lambda value: search(as_text(value)), name=name, value=pattern)


def _more_than(fields: CheckFields, name: str) -> Comparison:
    limit = fields.number(name)
    return Comparison(words=f"is more than {limit:g}", holds=lambda v: _number(v) > limit, name=name, value=limit)


def _less_than(fields: CheckFields, name: str) -> Comparison:
    limit = fields.number(name)
    return Comparison(words=f"is less than {limit:g}", holds=lambda v: _number(v) < limit, name=name, value=limit)


_READERS: dict[str, Callable[[CheckFields, str], Comparison]] = {
    "equals": _equals,
    "contains": _contains,
    "not_contains": _not_contains,
    "contains_any": _contains_any,
    "matches": _matches,
    "more_than": _more_than,
    "less_than": _less_than,
}


def _has(value: Json, wanted: str) -> bool:
    return wanted.casefold() in as_text(value).casefold()


def _number(value: Json) -> int | float:
    """A text that spells a number may stand for it. What is none is neither more nor less than any."""
    read = parsed(value)
    return read if isinstance(read, (int, float)) and not isinstance(read, bool) else nan


def _quoted(value: Json) -> str:
    return f"“{short(value)}”" if isinstance(value, str) else short(value)
