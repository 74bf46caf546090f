"""Conditions on what a running replay sees: the language of rules, breakpoints and expectations.

    docs is empty                     of the newest tool answer (a rule), or of the arguments (a breakpoint)
    tool = "search_docs" and step >= 3
    result.orders[0].user_id != "u_7710"
    calls.search_docs > 2             how often a tool was called so far
    state.plan is missing
    text contains "cancel"

A condition is one or more comparisons joined by `and`. The left side is a path into what is seen, the right side JSON.
There is no code in it and nothing is ever evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from sessions_app.core.compare.strict import Interner, is_number, same_leaf
from sessions_app.core.errors import ReplayProductError
from sessions_app.core.payload import JsonObject, JsonValue, load_finite

ROOTS = ("tool", "result", "args", "text", "state", "step", "calls", "kind")
"""What a path may begin with: name and newest answer of the tool, arguments, text of the newest message, state,
number of the step, calls so far by tool, kind of the step."""
MAX_LENGTH = 2000
_LEFT = re.compile(r'[^\s=<>!"]+')
_SIGN = re.compile(r"!=|>=|<=|=|>|<|contains(?!\w)")
_SPLIT = re.compile(r'\\.|"|(?<!\S)and(?!\S)', re.DOTALL)
_SEGMENT = re.compile(r"([^.\[\]]+)|\[([0-9]{1,9})\]")
_PATH = re.compile(r"([^.\[\]]+|\[[0-9]{1,9}\])(\.[^.\[\]]+|\[[0-9]{1,9}\])*")
_WORD = re.compile(r'[^\s=<>!"\[\]{}][^\s"]*')
_IS = ("empty", "missing", "null", "true", "false")
_MISSING = object()


class ConditionError(ReplayProductError):
    """A condition cannot be understood; `part` is that part as it was written."""

    def __init__(self, message: str, *, part: str) -> None:
        super().__init__(message)
        self.message = message
        self.part = part


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One value that is looked at, and what must hold for it."""

    path: tuple[str | int, ...]
    test: str
    """`=`, `!=`, `>`, `>=`, `<`, `<=`, `contains`, `empty`, `missing`, or the last two with `not ` before them."""
    value: JsonValue = None

    def holds(self, seen: JsonObject) -> bool:
        return _TESTS[self.test](_found(seen, self.path), self.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """Comparisons that must hold together. `text` is how it was written."""

    text: str
    comparisons: tuple[Comparison, ...]

    def holds(self, seen: JsonObject) -> bool:
        """`seen` has some of `ROOTS` as its keys; what it does not have is missing."""
        return all(comparison.holds(seen) for comparison in self.comparisons)


def read_condition(text: JsonValue, *, root: str) -> Condition:
    """`root` is where paths begin that name no root. Raises `ConditionError`."""
    if not isinstance(text, str) or not text.strip():
        raise ConditionError("A condition is a text such as `docs is empty`.", part="")
    if len(text) > MAX_LENGTH:
        raise ConditionError(f"A condition has at most {MAX_LENGTH} characters.", part=text[:80])
    parts = _parts(text)
    return Condition(text=text.strip(), comparisons=tuple(_comparison(part.strip(), root) for part in parts))


def _parts(text: str) -> list[str]:
    """The text at each `and` that stands outside of quotes."""
    parts, quoted, start = [], False, 0
    for found in _SPLIT.finditer(text):
        if found[0] == '"':
            quoted = not quoted
        elif found[0] == "and" and not quoted:
            parts.append(text[start : found.start()])
            start = found.end()
    if quoted:
        raise ConditionError("A quotation mark is not closed.", part=text[start:].strip()[:80])
    return [*parts, text[start:]]


def _comparison(part: str, root: str) -> Comparison:
    if not part:
        raise ConditionError("One side of `and` is empty.", part="and")
    left = _LEFT.match(part)
    if left is None:
        raise _no_comparison(part)
    path, rest = _path(left[0], root), part[left.end() :].strip()
    words = rest.split()
    if words and words[0] == "is" and words[-1] in _IS and words[1:-1] in ([], ["not"]):
        return _is(path, words[-1], negated=len(words) == 3)
    sign = _SIGN.match(rest)
    if sign is None or sign.end() == len(rest):
        raise _no_comparison(part)
    return Comparison(path=path, test=sign[0], value=_right(sign[0], rest[sign.end() :].strip()))


def _right(sign: str, text: str) -> JsonValue:
    value = _value(text)
    if sign[0] in "<>" and not is_number(value):
        raise ConditionError(f"`{sign}` needs a number on its right side.", part=text[:80])
    return value


def _no_comparison(part: str) -> ConditionError:
    words = "use `path is empty`, `path = value`, `path contains value` or `path >= number`"
    return ConditionError(f"{part[:80]!r} is not a comparison; {words}.", part=part[:80])


def _is(path: tuple[str | int, ...], word: str, *, negated: bool) -> Comparison:
    if word in ("empty", "missing"):
        return Comparison(path=path, test=f"not {word}" if negated else word)
    return Comparison(path=path, test="!=" if negated else "=", value=json.loads(word))


def _path(text: str, root: str) -> tuple[str | int, ...]:
    if _PATH.fullmatch(text) is None:
        raise ConditionError(f"{text[:80]!r} is not a path; write it as `orders[0].status`.", part=text[:80])
    segments = [int(found[2]) if found[2] else found[1] for found in _SEGMENT.finditer(text)]
    return tuple(segments) if segments[0] in ROOTS else (root, *segments)


def _value(text: str) -> JsonValue:
    """JSON; a single word without quotes is a text."""
    try:
        return load_finite(text)
    except (ValueError, RecursionError):
        if _WORD.fullmatch(text):
            return text
    words = "write a value as JSON, and a text of several words in quotation marks"
    raise ConditionError(f"{text[:80]!r} is not a value; {words}.", part=text[:80])


def _found(seen: JsonValue, path: tuple[str | int, ...]) -> JsonValue:
    for segment in path:
        if not _has(seen, segment):
            return _MISSING
        seen = seen[segment]
    return seen


def _has(seen: JsonValue, segment: str | int) -> bool:
    if isinstance(segment, int):
        return isinstance(seen, list) and segment < len(seen)
    return isinstance(seen, dict) and segment in seen


# --- tests -------------------------------------------------------------------------------------


def _same(found: JsonValue, value: JsonValue) -> bool:
    """`1`, `1.0` and `true` are three values, also inside of lists and objects."""
    if not isinstance(value, dict | list):
        return same_leaf(found, value)
    return type(found) is type(value) and Interner(any_key_order=True).same(found, value)


def _is_empty(found: JsonValue, value: JsonValue) -> bool:
    return found is None or found in ("", [], {})


def _contains(found: JsonValue, value: JsonValue) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value.casefold() in found.casefold()
    if isinstance(found, list):
        return any(_same(item, value) for item in found)
    return isinstance(found, dict) and isinstance(value, str) and value in found


def _ordered(holds: Callable[[float, float], bool]) -> Callable[[JsonValue, JsonValue], bool]:
    def test(found: JsonValue, value: JsonValue) -> bool:
        return is_number(found) and is_number(value) and holds(found, value)

    return test


_TESTS: dict[str, Callable[[JsonValue, JsonValue], bool]] = {
    "=": _same,
    "!=": lambda found, value: not _same(found, value),
    ">": _ordered(lambda a, b: a > b),
    ">=": _ordered(lambda a, b: a >= b),
    "<": _ordered(lambda a, b: a < b),
    "<=": _ordered(lambda a, b: a <= b),
    "contains": _contains,
    "empty": _is_empty,
    "not empty": lambda found, value: found is not _MISSING and not _is_empty(found, value),
    "missing": lambda found, value: found is _MISSING,
    "not missing": lambda found, value: found is not _MISSING,
}
