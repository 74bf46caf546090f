"""Values that are not all there: cut to a size, or with parts taken out by redaction.

Such a value may have been anything, so against a whole one it is not comparable: neither the same
nor changed.
"""

from __future__ import annotations

from sessions_app.core.payload import JsonValue
from sessions_app.core.redaction.placeholders import PLACEHOLDER

TRUNCATED_KEY = "$truncated"
_DIGEST_KEYS = ("sha256", "digest")


def is_truncated(value: JsonValue) -> bool:
    return isinstance(value, dict) and TRUNCATED_KEY in value


def not_comparable_note(left: JsonValue, right: JsonValue) -> str | None:
    """Why two values cannot be compared; None when they can. Equal texts never come here."""
    if is_truncated(left) or is_truncated(right):
        return _truncated_note(left, right)
    if isinstance(left, str) and isinstance(right, str):
        return _redacted_note(left, right)
    return None


def _truncated_note(left: JsonValue, right: JsonValue) -> str | None:
    if not is_truncated(left):
        return "truncated on the right"
    if not is_truncated(right):
        return "truncated on the left"
    if any(_digest(left, key) and _digest(left, key) == _digest(right, key) for key in _DIGEST_KEYS):
        return None
    return "truncated on both sides"


def _digest(value: JsonValue, key: str) -> str | None:
    mark = value[TRUNCATED_KEY]
    found = mark.get(key) if isinstance(mark, dict) else None
    return found if isinstance(found, str) else None


def _redacted_note(left: str, right: str) -> str | None:
    """Placeholders are stable, so equal ones stand for equal values and need no guessing."""
    if "[" not in left and "[" not in right:
        return None
    left_marks, right_marks = _marks(left), _marks(right)
    only_left, only_right = left_marks - right_marks, right_marks - left_marks
    if only_left and only_right:
        return None if _shape(left) == _shape(right) else "redacted differently"
    if only_left and _could_be(left, only_left, right):
        return "redacted on the left"
    if only_right and _could_be(right, only_right, left):
        return "redacted on the right"
    return None


def _marks(text: str) -> set[str]:
    return {found.group() for found in PLACEHOLDER.finditer(text)}


def _shape(text: str) -> str:
    """The text with each placeholder reduced to its rule."""
    return PLACEHOLDER.sub(lambda found: found.group().partition(":")[0], text)


def _could_be(redacted: str, marks: set[str], whole: str) -> bool:
    """Whether `whole` is `redacted` with some text in the place of each mark."""
    pieces = _pieces(redacted, marks)
    first, last = pieces[0], pieces[-1]
    if not whole.startswith(first) or not whole.endswith(last):
        return False
    position, end = len(first), len(whole) - len(last)
    for piece in pieces[1:-1]:
        found = whole.find(piece, position, max(end, position))
        if found < 0:
            return False
        position = found + len(piece)
    return position <= end


def _pieces(redacted: str, marks: set[str]) -> list[str]:
    """What stands around the marks."""
    pieces, start = [], 0
    for found in PLACEHOLDER.finditer(redacted):
        if found.group() in marks:
            pieces.append(redacted[start : found.start()])
            start = found.end()
    return [*pieces, redacted[start:]]
