"""Which differences between two runs are told again further on: the same change of the same value has one cause."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from sessions_app.core.compare.json_diff import MISSING, Difference
from sessions_app.core.compare.runs import StepPair
from sessions_app.core.payload import JsonValue

TELLING = 6
"""Characters of a value that does not come about twice by chance; a shorter one has to stand under the same name."""

Causes = dict[tuple[int, int], int]


Change = tuple[str, tuple[JsonValue, ...]]
"""The path of a field, and what each run holds there."""


def causes(pairs: Sequence[StepPair]) -> Causes:
    """(number of a pair, number of its difference) → number of the earlier pair where the same change stands first."""
    return repeated([[_change(found) for found in pair.differences] for pair in pairs])


def repeated(rows: Sequence[Sequence[Change | None]]) -> Causes:
    """Likewise for rows of changes, of however many runs; None is one that is told each time."""
    first: dict[tuple[str, ...], int] = {}
    found: Causes = {}
    for number, row in enumerate(rows):
        for at, change in enumerate(row):
            if change is None:
                continue
            cause = first.setdefault(_telling(*change), number)
            if cause != number:
                found[number, at] = cause
    return found


def _change(found: Difference) -> Change | None:
    return None if found.status == "not_comparable" else (found.path, (found.left, found.right))


def _telling(path: str, values: tuple[JsonValue, ...]) -> tuple[str, ...]:
    spelled = tuple(map(_spelled, values))
    return spelled if max(map(len, spelled)) >= TELLING else (*spelled, _name_of(path))


def _spelled(value: JsonValue) -> str:
    return "" if value is MISSING else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _name_of(path: str) -> str:
    return next(reversed(re.findall(r"[^\W\d]\w*", path)), path)
