"""What is looked for in the steps of one run: a phrase, a kind, an error, the value of an argument.

Recorded values are JSON, so they are compared as they read and not as they are spelled: `\\u00e9`
is `é`, and the arguments that a provider sends as a text are searched like an object.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

from sessions_app.core.formats.fields import names_of
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import StepKind

LONGEST = 200
"""Characters of a search."""
_TERM = re.compile(r'(?:^|(?<=\s))(?:(kind):(\S+)|args\.([^\s:"]+):("[^"]*"|\S+))(?=\s|$)', re.IGNORECASE)
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|(["\\/bfnrt]))')
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Argument:
    """`args.order.id:A-1*`: a value by its path, whole, in any case, with `*` for any characters."""

    path: tuple[str, ...]
    wanted: re.Pattern[str]

    def matches(self, arguments: bytes) -> bool:
        return any(self.wanted.fullmatch(_spelled(value)) for value in _values_at(_parsed(arguments), self.path))


@dataclass(frozen=True, kw_only=True)
class FindTerms:
    """All of them have to be true of a step."""

    text: str
    """As it was asked."""
    phrase: str = ""
    kind: str = ""
    is_error: bool = False
    arguments: tuple[Argument, ...] = ()
    problem: str = ""
    """Why it cannot be searched, in words; nothing of it is dropped in silence."""

    @property
    def needs_payloads(self) -> bool:
        return bool(self.phrase or self.arguments)

    @cached_property
    def _folded(self) -> str:
        return self.phrase.casefold()

    def times_in(self, text: str) -> int:
        """How often the phrase stands in a text, in any case."""
        return text.casefold().count(self._folded) if self.phrase else 0

    def times_in_payload(self, content: bytes) -> int:
        return self.times_in(as_read(content.decode(errors="replace"))) if self.phrase else 0


def find_terms(asked: str) -> FindTerms:
    """Reads a search: `kind:tool`, `error`, `args.path:value`, and the other words as one phrase."""
    text = " ".join(asked.replace("\x00", "").split())
    if len(text) > LONGEST:
        return FindTerms(text=text[:LONGEST], problem=f"It is longer than {LONGEST} characters.")
    kinds = [found[2].lower() for found in _TERM.finditer(text) if found[1]]
    arguments = tuple(_argument(found[3], found[4]) for found in _TERM.finditer(text) if found[3])
    rest = " ".join(_TERM.sub(" ", text).split())
    is_error = rest.lower() == "error"
    phrase = "" if is_error else _unquoted(rest)
    return FindTerms(
        text=text,
        phrase=phrase,
        kind=kinds[0] if kinds else "",
        is_error=is_error,
        arguments=arguments,
        problem=_problem(kinds),
    )


def _problem(kinds: list[str]) -> str:
    known = names_of(StepKind)
    unknown = next((kind for kind in kinds if kind not in known), None)
    if unknown is not None:
        return f"There is no kind {unknown!r}; kinds are {', '.join(known)}."
    return "A step has one kind; name one." if len(set(kinds)) > 1 else ""


def _argument(path: str, value: str) -> Argument:
    pattern = "*".join(re.sub(r"([\[?])", r"[\1]", part) for part in _unquoted(value).split("*"))
    return Argument(tuple(path.split(".")), re.compile(translate(pattern), re.IGNORECASE))


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == '"' else text


def as_read(text: str) -> str:
    """JSON text with its escapes undone; linear, and never fails."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    high, low, short = found.groups()
    if short:
        return _SHORT.get(short, short)
    code = int(high, 16)
    if not low:
        return chr(code)
    if 0xD800 <= code < 0xDC00:
        return chr(0x10000 + ((code - 0xD800) << 10) + int(low, 16) - 0xDC00)
    return chr(code) + chr(int(low, 16))


# --- arguments ---------------------------------------------------------------------------------


def _parsed(content: bytes) -> JsonValue:
    """Numbers stay as they were spelled; what cannot be read holds no value."""
    value = _loads(content)
    return _loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value


def _loads(content: bytes | str) -> JsonValue:
    try:
        return json.loads(content, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None


def _values_at(value: JsonValue, path: tuple[str, ...]) -> list[JsonValue]:
    """A list answers for each of its items, or for one when the path has its number."""
    values = [value]
    for name in path:
        values = [inner for each in values for inner in _inside(each, name)]
    return [item for each in values for item in (each if isinstance(each, list) else [each])]


def _inside(value: JsonValue, name: str) -> list[JsonValue]:
    found: list[JsonValue] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            found += [each[name]] if name in each else []
        elif isinstance(each, list) and name.isascii() and name.isdecimal() and len(name) < 10:
            found += each[int(name) : int(name) + 1]
        elif isinstance(each, list):
            waiting += reversed(each)
    return found


def _spelled(value: JsonValue) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return value if isinstance(value, str) else ""
