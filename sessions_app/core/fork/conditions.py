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

from sessions_app.core.errors import ReplayProductError
from sessions_app.core.payload import JsonObject, JsonValue

ROOTS = ("tool", "result", "args", "text", "state", "step", "calls", "output", "kind")
"""What a path may begin with: name and newest answer of the tool, arguments, text of the newest message, state,
number of the step, calls so far by tool, output of the run, kind of the step."""
MAX_LENGTH = 2000
_COMPARISON = re.compile(
    r"\s*(?P<path>[^\s=<>!]+)\s*"
    r"(?:(?P<is>is(?:\s+not)?)\s+(?P<word>empty|missing|null|true|false)|(?P<sign>=|!=|>=|<=|>|<|contains\b)\s*(?P<value>.+?))\s*",
    re.DOTALL,
)
_SEGMENT = re.compile(r"([^.\[\]]+)|\[(\d{1,9})\]")
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
        raise ConditionError("A condition is a text such as `docs is empty`.", part=str(text)[:80])
    if len(text) > MAX_LENGTH:
        raise ConditionError(f"A condition has at most {MAX_LENGTH} characters.", part=text[:80])
    parts = _parts(text)
    return Condition(text=text.strip(), comparisons=tuple(_comparison(part, root) for part in parts))


def _parts(text: str) -> list[str]:
    """The text at each `and` that stands outside of quotes."""
    parts, quoted, start = [], False, 0
    for found in re.finditer(r'\\.|"|\band\b', text):
        if found[0] == '"':
            quoted = not quoted
        elif found[0] == "and" and not quoted:
            parts.append(text[start : found.start()])
            start = found.end()
    return [*parts, text[start:]]


def _comparison(part: str, root: str) -> Comparison:
    found = _COMPARISON.fullmatch(part)
    if found is None:
        words = "use `path is empty`, `path = value`, `path contains value` or `path >= number`"
        raise ConditionError(f"{part.strip()[:80]!r} is no comparison; {words}.", part=part.strip()[:80])
    path = _path(found["path"], root)
    if found["is"]:
        return _is(path, found["word"], negated=found["is"] != "is")
    return Comparison(path=path, test=found["sign"], value=_value(found["value"]))


def _is(path: tuple[str | int, ...], word: str, *, negated: bool) -> Comparison:
    if word in ("empty", "missing"):
        return Comparison(path=path, test=f"not {word}" if negated else word)
    return Comparison(path=path, test="!=" if negated else "=", value=json.loads(word))


def _path(text: str, root: str) -> tuple[str | int, ...]:
    segments: list[str | int] = []
    at = 0
    for found in _SEGMENT.finditer(text):
        if text[at : found.start()] not in ("", "."):
            break
        segments.append(found[1] if found[1] is not None else int(found[2]))
        at = found.end()
    if at != len(text) or not segments:
        raise ConditionError(f"{text[:80]!r} is no path; write it as `orders[0].status`.", part=text[:80])
    return tuple(segments) if segments[0] in ROOTS else (root, *segments)


def _value(text: str) -> JsonValue:
    """JSON; a word without quotes is a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text[:1] in '"[{':
            raise ConditionError(f"{text[:80]!r} is no JSON.", part=text[:80]) from None
        return text


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
    """`1`, `1.0` and `true` are three values."""
    return found is not _MISSING and type(found) is type(value) and bool(found == value)


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
        numbers = all(isinstance(side, int | float) and not isinstance(side, bool) for side in (found, value))
        return numbers and holds(found, value)

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
