"""One field that differs, as two texts whose differing words are marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sessions_app.core.compare.field_words import field_words, message_text, signature
from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.compare.words import Segment, text_difference
from sessions_app.core.payload import JsonValue
from sessions_app.web.render import spelled

LONG_EQUAL = 240
"""Characters of an equal stretch that are shown whole; of a longer one, the words next to a change."""
KEPT = 100
LONGEST = 20_000
"""Characters of one side that are shown."""

_WHITE = str.maketrans({" ": "·", "\t": "→\t", "\n": "⏎\n", "\r": "␍", "\u00a0": "⍽"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Bit:
    """A stretch of text; `elided` says how many equal characters stand for it."""

    kind: Literal["equal", "removed", "added", "gap"]
    text: str
    elided: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A place, and what stands there on either side."""

    path: str
    words: str
    """The place as people say it."""
    left: tuple[Bit, ...]
    right: tuple[Bit, ...]
    is_left_missing: bool = False
    is_right_missing: bool = False
    note: str = ""
    status: str = "changed"

    @property
    def size(self) -> int:
        """Characters of the longer side."""
        return max(sum(len(bit.text) for bit in side) for side in (self.left, self.right))

    @property
    def changes(self) -> int:
        """Places in which the sides differ."""
        return max(sum(bit.kind in ("removed", "added") for bit in side) for side in (self.left, self.right))


def field_of(
    path: str,
    left: JsonValue,
    right: JsonValue,
    *,
    note: str | None = None,
    status: str = "changed",
    tools: Sequence[str] = (),
) -> Field:
    """`tools` are the names of the tool definitions that the path counts."""
    is_one_sided = left is MISSING or right is MISSING
    told = (_told(left), _told(right)) if is_one_sided else (left, right)
    bits, blocks = _bits(*told)
    is_in_words = any(signature(value) or message_text(value) for value in (left, right))
    left_out = "" if is_in_words or told == (left, right) else "null and empty fields omitted"
    notes = [text for text in (note, "too different to compare by words" if blocks else "", left_out) if text]
    return Field(
        path=path,
        words=field_words(path, tools),
        left=_only(bits, "removed"),
        right=_only(bits, "added"),
        is_left_missing=left is MISSING,
        is_right_missing=right is MISSING,
        note="; ".join(notes),
        status=status,
    )


def text_sides(left: str, right: str) -> tuple[tuple[Bit, ...], tuple[Bit, ...]]:
    bits = _shortened(text_difference(left, right).segments)
    return _only(bits, "removed"), _only(bits, "added")


def _bits(left: JsonValue, right: JsonValue) -> tuple[list[Bit], bool]:
    if isinstance(left, str) and isinstance(right, str):
        found = text_difference(left, right)
        quoted = [Bit(kind="equal", text='"'), *_shortened(found.segments), Bit(kind="equal", text='"')]
        return quoted, found.too_different
    if isinstance(left, dict | list) and isinstance(right, dict | list):
        found = text_difference(_written(left), _written(right))
        return _shortened(found.segments), found.too_different
    sides = [Bit(kind="removed", text=_in_short(left)), Bit(kind="added", text=_in_short(right))]
    return [bit for bit in sides if bit.text], False


def _told(value: JsonValue) -> JsonValue:
    """What the members of a value say; what stands beside nothing need not say what it does not hold."""
    if isinstance(value, dict):
        members = {key: _told(item) for key, item in value.items()}
        return {key: item for key, item in members.items() if item not in (None, {}, [], "")}
    return [_told(item) for item in value] if isinstance(value, list) else value


def _in_short(value: JsonValue) -> str:
    """A tool that only one side has is shown as its signature, a message by what it says."""
    return signature(value) or (message_text(value) or "")[:LONGEST] or _written(value)


def _written(value: JsonValue) -> str:
    if value is MISSING:
        return ""
    text = spelled.compact(spelled.of_value(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _shortened(segments: Iterable[Segment]) -> list[Bit]:
    """Equal stretches keep their ends; changed white space is made visible."""
    given = list(segments)
    bits: list[Bit] = []
    for i, segment in enumerate(given):
        if _is_between_changes(given, i):
            bits += [Bit(kind="removed", text=segment.text), Bit(kind="added", text=segment.text)]
        elif segment.kind == "equal":
            bits += _equal(segment.text, is_first=i == 0, is_last=i == len(given) - 1)
        else:
            bits.append(Bit(kind=segment.kind, text=_marked(segment.text[:LONGEST])))
    return bits


def _is_between_changes(given: list[Segment], i: int) -> bool:
    """A space between two changed words belongs to the change: a sentence is marked as one."""
    is_space = given[i].kind == "equal" and not given[i].text.strip()
    return is_space and 0 < i < len(given) - 1 and "equal" not in (given[i - 1].kind, given[i + 1].kind)


def _equal(text: str, *, is_first: bool, is_last: bool) -> list[Bit]:
    if len(text) <= LONG_EQUAL:
        return [Bit(kind="equal", text=text)]
    head = "" if is_first else text[:KEPT]
    tail = "" if is_last else text[-KEPT:]
    gap = Bit(kind="gap", text="", elided=len(text) - len(head) - len(tail))
    return [bit for bit in (Bit(kind="equal", text=head), gap, Bit(kind="equal", text=tail)) if bit.text or bit.elided]


def _marked(text: str) -> str:
    """White space alone, or at an end, is a change that nobody would see."""
    if not text.strip():
        return text.translate(_WHITE)
    core = text.strip()
    start = text.index(core)
    return text[:start].translate(_WHITE) + core + text[start + len(core) :].translate(_WHITE)


def _only(bits: list[Bit], kind: str) -> tuple[Bit, ...]:
    return tuple(bit for bit in bits if bit.kind in ("equal", "gap", kind))
