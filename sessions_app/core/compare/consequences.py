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


def causes(pairs: Sequence[StepPair]) -> Causes:
    """(number of a pair, number of its difference) → number of the earlier pair where the same change stands first."""
    first: dict[tuple[str, ...], int] = {}
    found: Causes = {}
    for number, pair in enumerate(pairs):
        for at, difference in enumerate(pair.differences):
            if difference.status != "changed":
                continue
            cause = first.setdefault(_change_of(difference), number)
            if cause != number:
                found[number, at] = cause
    return found


def _change_of(difference: Difference) -> tuple[str, ...]:
    left, right = _spelled(difference.left), _spelled(difference.right)
    if max(len(left), len(right)) >= TELLING:
        return left, right
    return left, right, _name_of(difference.path)


def _spelled(value: JsonValue) -> str:
    return "" if value is MISSING else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _name_of(path: str) -> str:
    return next(reversed(re.findall(r"[^\W\d]\w*", path)), path)
