"""A run as a row of letters, one for each step: `m` model, `t` tool, `r` retrieval, `a` agent; capital if it failed.

No failure is ever folded away: where one letter stands for several steps, it is that of the first one that failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def strip_of(letters: Sequence[str], most: int) -> str:
    """At most so many letters for all steps: each stands for the same number of them, give or take one."""
    if len(letters) <= most:
        return "".join(letters)
    ends = [len(letters) * n // most for n in range(most + 1)]
    return "".join(_first_failed(letters[start:end]) for start, end in pairwise(ends))


def _first_failed(letters: Sequence[str]) -> str:
    return next((letter for letter in letters if letter.isupper()), letters[0])
