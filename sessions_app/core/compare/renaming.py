"""What two runs differ in because they were asked about different things."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from sessions_app.core.compare.json_diff import Difference
from sessions_app.core.compare.runs import Comparison
from sessions_app.core.compare.sentences import value_text
from sessions_app.core.compare.sequence import common_subsequence

ASKED_FOR = ("input", "user_id", "tenant_id")
"""Facts about what was asked, and for whom."""
_WORD = re.compile(r"[\w-]+")
_NEW_ID = re.compile(r"([a-z]+[_-])[\w-]*\d[\w-]*", re.IGNORECASE)
_REQUEST = ("request", "prior", "user_id", "tenant_id", "state", "input_state")
"""Beginnings of the paths of what a step was given: the question is in it."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """Words of what the left run was asked, each with the one that stands in its place in the right run."""

    words: dict[str, str]

    def applied(self, text: str) -> str:
        """As the left run would have said it of what the right run was asked."""
        return _WORD.sub(lambda word: self.words.get(word[0], word[0]), text)

    def explains(self, found: Difference) -> bool:
        """Whether a difference of a step is there because the runs were asked differently."""
        if not self.words or found.status == "not_comparable":
            return False
        if found.path.startswith(_REQUEST):
            return True
        left, right = (value_text(value, length=10_000) for value in (found.left, found.right))
        return self.applied(left) == right or (found.path.startswith("result") and self._are_new_ids(left, right))

    def _are_new_ids(self, left: str, right: str) -> bool:
        """`rf_9000` and `rf_9117`: another question gets another one. Not what was asked about, which should come
        back."""
        one, other = (_NEW_ID.fullmatch(text.strip('"')) for text in (left, right))
        return one is not None and other is not None and one[1] == other[1] and one[0] not in self.words


def renaming(comparison: Comparison) -> Renaming:
    found: dict[str, str] = {}
    for fact in comparison.facts:
        if fact.name in ASKED_FOR and fact.status == "changed":
            words = (_WORD.findall(value_text(value, length=10_000)) for value in (fact.left, fact.right))
            found |= _replaced(*words)
    return Renaming(found)


def of_questions(comparison: Comparison) -> Renaming:
    """Nothing is explained where both were asked the same question."""
    return renaming(comparison) if comparison.is_changed("input") else Renaming({})


def _replaced(left: list[str], right: list[str]) -> dict[str, str]:
    """Between two words that both have, as many words stand for each other; or as many that hold a digit."""
    pairs = [(-1, -1), *common_subsequence(left, right).pairs, (len(left), len(right))]
    found: dict[str, str] = {}
    for (a, c), (b, d) in pairwise(pairs):
        one, other = left[a + 1 : b], right[c + 1 : d]
        if len(one) != len(other):
            one, other = ([word for word in words if re.search(r"\d", word)] for words in (one, other))
        found |= dict(zip(one, other, strict=True)) if len(one) == len(other) else {}
    return found
