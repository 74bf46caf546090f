"""What a change at one step came to, in one line: `With per_day 9.0: €828.00 → €747.00`."""

from __future__ import annotations

import json
from itertools import takewhile

from sessions_app.core.clipping import shortened
from sessions_app.core.fork.spelling import short
from sessions_app.core.fork.words import describe
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.models import Run

BRIEF = 60
FIELDS = 2
"""Fields of an edited answer that are named one by one."""


def headline(change: JsonObject, recorded: str | None, original: Run, made: Run) -> str:
    """`recorded` is what the step answered, as lists show it."""
    return f"With {_with(change, recorded)}: {_came_to(original, made)}"


def _with(change: JsonObject, recorded: str | None) -> str:
    """Of an edited object the fields that differ."""
    if change["kind"] == "model_answer":
        return "this answer"
    if change["kind"] != "tool_result" or "value" not in change:
        return describe(change)
    before, after = parsed(recorded), change["value"]
    if isinstance(before, dict) and isinstance(after, dict):
        edits = [f"{name} {short(value, BRIEF)}" for name, value in after.items() if before.get(name) != value]
        if edits and len(edits) <= FIELDS and before.keys() <= after.keys():
            return ", ".join(edits)
    return f"the answer {short(after, BRIEF)}"


def parsed(text: str | None) -> JsonValue:
    """The value of a text that is JSON, else the text itself."""
    try:
        value: JsonValue = json.loads(text) if text is not None else None
    except ValueError:
        return text
    return value


def _came_to(original: Run, made: Run) -> str:
    before, after = _end(original), _end(made)
    if before == after:
        return "the same outcome"
    left, right = _differing(before.split(), after.split())
    if left and right and max(len(left), len(right)) <= BRIEF:
        return f"{left} → {right}"
    return f"{shortened(before, BRIEF)} → {shortened(after, BRIEF)}"


def _end(run: Run) -> str:
    return run.output_preview or run.error_preview or "no outcome"


def _differing(left: list[str], right: list[str]) -> tuple[str, str]:
    """The words between those that both begin and end with, without the mark that ends a sentence."""
    start = _shared(left, right)
    left, right = left[start:], right[start:]
    end = _shared(left[::-1], right[::-1])
    before, after = (" ".join(side[: len(side) - end]).rstrip(".,;") for side in (left, right))
    return before, after


def _shared(left: list[str], right: list[str]) -> int:
    """How many words both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
