"""Walks the tokens of a JSON text and tells which scalars the field rules call secret.

The text is valid JSON, so one expression is enough to cut it into tokens, and a stack of frames
knows under which key a scalar stands. What can only be known when an object or list is complete
(the name may come after the value) is put down as a late region, for the caller to read again.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from .field_names import LONGEST_NAME, fold_name, is_secret_field
from .placeholders import PLACEHOLDER
from .rules import FieldRule

TOKEN = re.compile(
    r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"([ \t\r\n]*+:)?'  # 1 a string, 2 that is a key
    r"|([{\[])"
    r"|([}\]])"
    r"|(-?[0-9][0-9.eE+-]*+)"
    r"|[tfn]",  # the rest of true, false and null is skipped
    re.DOTALL,
)
STRING, KEY, OPEN, CLOSE, NUMBER = 1, 2, 3, 4, 5
SHORTEST_NUMBER = 12
"""Digits; only cards and the like are looked for in bare numbers."""
UNKNOWN = (None,)
LONGEST_SPELLING = LONGEST_NAME * len(r"\ud83d\ude00")
"""Of the longest name; longer keys need not be decoded."""


class Role(Enum):
    """What a key says about the value beside or below it."""

    PLAIN = auto()
    SECRET = auto()
    TOKEN = auto()
    NAME = auto()
    VALUE = auto()
    BASE64 = auto()
    LOGPROB = auto()
    PROPERTIES = auto()
    SCHEMA = auto()
    SCHEMA_VALUE = auto()


ROLES = {
    "name": Role.NAME,
    "key": Role.NAME,
    "header": Role.NAME,
    "field": Role.NAME,
    "value": Role.VALUE,
    "base64": Role.BASE64,
    "logprob": Role.LOGPROB,
    "properties": Role.PROPERTIES,
    "type": Role.SCHEMA,
    "anyof": Role.SCHEMA,
    "allof": Role.SCHEMA,
    "oneof": Role.SCHEMA,
    "$ref": Role.SCHEMA,
    "default": Role.SCHEMA_VALUE,
    "const": Role.SCHEMA_VALUE,
    "enum": Role.SCHEMA_VALUE,
    "example": Role.SCHEMA_VALUE,
    "examples": Role.SCHEMA_VALUE,
}


class Meaning(NamedTuple):
    """A key's role, and the field rule that says so for SECRET and TOKEN."""

    role: Role
    rule: str
    name: str = ""
    """In snake_case, where a path of a rule has it."""
    paths: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The rules for which it is secret below these names, the nearest first."""


PLAIN = Meaning(Role.PLAIN, "")


class Region(NamedTuple):
    """A span of the text in which every scalar is secret."""

    start: int
    end: int
    rule: str


class Scalar(NamedTuple):
    """A key, string or number; positions and text are without the quotes."""

    kind: int
    start: int
    end: int
    raw: str
    secret: str
    """The field rule that calls it secret; empty when none does."""
    base64: bool


class Frame:
    """An open object or list."""

    __slots__ = (
        "count",
        "first",
        "has_logprob",
        "in_list",
        "is_object",
        "looks_like_schema",
        "meaning",
        "named",
        "schema_rule",
        "second",
        "secret",
        "start",
        "tokens",
        "under",
        "value",
    )

    def __init__(self, start: int, is_object: bool, parent: "Frame | None", secret: str) -> None:
        self.start = start
        self.is_object = is_object
        self.in_list = parent is not None and not parent.is_object
        self.under: Meaning = parent.meaning if parent is not None else PLAIN
        self.secret = secret
        self.meaning: Meaning = PLAIN
        self.count = 0
        self.first: str | None = None
        self.second: tuple[int, int, str] | None = None
        self.named = PLAIN
        self.value: tuple[int, int, str | None] | None = None
        self.tokens: list[Region] = []
        self.has_logprob = False
        self.schema_rule = ""
        self.looks_like_schema = False


class FieldMeanings:
    """Looks up what keys mean; keys repeat, so it remembers what it worked out."""

    def __init__(self, rules: Sequence[FieldRule]) -> None:
        self._rules = rules
        self._known = lru_cache(maxsize=2048)(self._work_out)

    def of(self, raw: str) -> Meaning:
        return self._known(raw) if len(raw) <= LONGEST_SPELLING else PLAIN

    def _work_out(self, raw: str) -> Meaning:
        name = decode_string(raw)
        if not name or len(name) > LONGEST_NAME:
            return PLAIN
        folded = fold_name(name)
        for rule in self._rules:
            if folded in rule.token_fields:
                return Meaning(Role.TOKEN, rule.name)
            if is_secret_field(rule, folded):
                return Meaning(Role.SECRET, rule.name)
        role = ROLES.get(name.lower(), Role.PLAIN)
        paths = [(rule.name, path[::-1]) for rule in self._rules for path in rule.paths if folded in path]
        ends = tuple((rule, path[1:]) for rule, path in paths if path[0] == folded)
        return Meaning(role, "", folded, ends) if paths else Meaning(role, "")


@lru_cache(maxsize=64)
def field_meanings(rules: tuple[FieldRule, ...]) -> FieldMeanings:
    """The same one for the same rules: the keys of one document are those of the next."""
    return FieldMeanings(rules)


class Scanner:
    """Reads one JSON text."""

    def __init__(self, text: str, meanings: FieldMeanings, known: Mapping[str, Sequence[object]]) -> None:
        """`known` has an empty list for each string that was looked at before and holds no secret."""
        self._text = text
        self._meaning_of = meanings.of
        self._known = known
        self.late: list[Region] = []
        """Regions found secret after they were passed; complete when the scan is."""

    def scan(self) -> Iterator[Scalar]:
        """The scalars that may hold a secret: short numbers and strings known to hold none are left out."""
        return self._scalars(0, len(self._text), Frame(0, False, None, ""))

    def scan_region(self, region: Region) -> Iterator[Scalar]:
        return self._scalars(region.start, region.end, Frame(0, False, None, region.rule))

    def _scalars(self, start: int, end: int, frame: Frame) -> Iterator[Scalar]:
        # A plain loop: it runs once for each token, and calls are what it costs.
        stack = [frame]
        known = self._known
        for match in TOKEN.finditer(self._text, start, end):
            token = match.lastindex
            if token == KEY:
                raw = match[1]
                frame.meaning = meaning = self._meaning_of(raw)
                if meaning.paths:
                    frame.meaning = _meaning_below(stack, meaning)
                elif meaning.role is Role.LOGPROB:
                    frame.has_logprob = True
                elif meaning.role is Role.SCHEMA:
                    frame.looks_like_schema = True
                if known.get(raw, UNKNOWN):
                    yield Scalar(KEY, match.start(1), match.end(1), raw, "", False)
            elif token == STRING:
                raw = match[1]
                base64 = frame.meaning.role is Role.BASE64
                secret = frame.secret or _secret_here(frame)
                if secret or base64 or known.get(raw, UNKNOWN):
                    yield Scalar(STRING, match.start(1), match.end(1), raw, secret, base64)
                self._note_value(frame, match.start(), match.end(), raw)
            elif token == NUMBER:
                secret = frame.secret or _secret_here(frame)
                if secret or match.end() - match.start() >= SHORTEST_NUMBER:
                    yield Scalar(NUMBER, match.start(), match.end(), match[0], secret, False)
                self._note_value(frame, match.start(), match.end(), None)
            elif token == OPEN:
                frame = _open_frame(match.start(), match[3] == "{", frame)
                stack.append(frame)
            elif token == CLOSE:
                closed = stack.pop()
                frame = stack[-1]
                self._close(closed, match.end())
                self._note_value(frame, closed.start, match.end(), None)
            else:
                self._note_value(frame, match.start(), match.end(), None)

    def _note_value(self, frame: Frame, start: int, end: int, raw: str | None) -> None:
        """Keeps what is needed to judge the frame when it closes; `raw` only for strings."""
        if not frame.is_object:
            frame.count += 1
            if frame.in_list and raw is not None:
                if frame.count == 1:
                    frame.first = raw
                elif frame.count == 2:
                    frame.second = start, end, raw
            return
        role, rule, *_ = frame.meaning
        if role is Role.VALUE:
            frame.value = start, end, raw
        elif role is Role.NAME and raw is not None:
            frame.named = self._meaning_of(raw)
        elif role is Role.TOKEN and raw is not None and looks_like_token(raw):
            frame.tokens.append(Region(start, end, rule))

    def _close(self, frame: Frame, end: int) -> None:
        if frame.secret:
            return
        if frame.schema_rule and not frame.looks_like_schema:
            self.late.append(Region(frame.start, end, frame.schema_rule))
        if not frame.has_logprob:  # {"token": " important", "logprob": -0.1} is model output
            self.late += frame.tokens
        if frame.is_object:
            self._add_named(frame.named, frame.value)
        elif frame.count == 2 and frame.first is not None:
            self._add_named(self._meaning_of(frame.first), frame.second)

    def _add_named(self, name: Meaning, value: tuple[int, int, str | None] | None) -> None:
        """`{"name": "authorization", "value": ...}` and `["Authorization", "..."]`."""
        if value is None:
            return
        start, end, raw = value
        if name.role is Role.SECRET or (name.role is Role.TOKEN and raw is not None and looks_like_token(raw)):
            self.late.append(Region(start, end, name.rule))


def _meaning_below(stack: Sequence[Frame], meaning: Meaning) -> Meaning:
    """Of a key of the last of these frames: secret where a path of a rule leads to it."""
    above = tuple(frame.meaning.name for frame in reversed(stack[:-1]) if frame.is_object)
    for rule, names in meaning.paths:
        if above[: len(names)] == names:
            return meaning._replace(role=Role.SECRET, rule=rule)
    return meaning


def _secret_here(frame: Frame) -> str:
    role, rule, *_ = frame.meaning
    if role is Role.SECRET:
        return rule
    return frame.schema_rule if role is Role.SCHEMA_VALUE else ""


def _open_frame(start: int, is_object: bool, parent: Frame) -> Frame:
    secret = parent.secret or _secret_here(parent)
    if is_object and not parent.secret and secret and parent.under.role is Role.PROPERTIES:
        # The JSON schema of a parameter called `password` is no secret, unless it is no schema.
        frame = Frame(start, True, parent, "")
        frame.schema_rule = secret
        return frame
    return Frame(start, is_object, parent, secret)


def outermost_regions(regions: Sequence[Region]) -> list[Region]:
    """Sorted, without those that lie in another one."""
    result: list[Region] = []
    for region in sorted(regions, key=lambda region: (region.start, -region.end)):
        if not result or region.start >= result[-1].end:
            result.append(region)
    return result


def decode_string(raw: str) -> str:
    """The text of a JSON string from its spelling between the quotes."""
    if "\\" not in raw:
        return raw
    decoded: str = json.loads(f'"{raw}"')
    return decoded


def looks_like_token(raw: str) -> bool:
    """Whether the value of a field called `token` is one, and not a count or a word of a model."""
    text = decode_string(raw)
    if len(text) < 8 or text.isdigit() or PLACEHOLDER.search(text):
        return False
    return text.split(None, 1) == [text]
