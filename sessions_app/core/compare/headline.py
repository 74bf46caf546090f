"""What a diff leads with: where the questions differ, the first difference that does not follow from that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.compare.json_diff import Difference
from sessions_app.core.compare.runs import Comparison, StepPair
from sessions_app.core.compare.sentences import call_text, value_text

_WORD = re.compile(r"[\w-]+")
_REQUEST = ("request", "prior", "instructions", "user_id", "tenant_id")
"""Beginnings of the paths of what a step was given: the question is in it."""
_ASKED_FOR = ("input", "user_id", "tenant_id")
"""Facts about what was asked, and for whom."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Headline:
    """The first difference that what was asked does not explain."""

    left: str
    right: str
    """The questions."""
    step: int | None
    """Of the left run, or of the right one where only it has the step; None where nothing else differs."""
    row: int | None
    """Number of its pair among the steps."""
    words: str


def headline(comparison: Comparison) -> Headline | None:
    """None where both runs were asked the same."""
    asked = next((fact for fact in comparison.facts if fact.name == "input" and fact.status == "changed"), None)
    if asked is None:
        return None
    names = _renamed(comparison)
    pair, found = next(_unexplained(comparison, names), (None, None))
    step = pair and (pair.left or pair.right)
    words = _words(pair, found) if pair else "Everything else that differs follows from that."
    row = next((number for number, each in enumerate(comparison.steps) if each is pair), None)
    left, right = (value_text(value) for value in (asked.left, asked.right))
    return Headline(left=left, right=right, step=step.index if step else None, row=row, words=words)


def _renamed(comparison: Comparison) -> dict[str, str]:
    """Words of what the left run was asked, each with the one that stands in its place in the right run."""
    found: dict[str, str] = {}
    for fact in comparison.facts:
        if fact.name in _ASKED_FOR and fact.status == "changed":
            left, right = (_WORD.findall(value_text(value, length=10_000)) for value in (fact.left, fact.right))
            found |= dict(zip(left, right, strict=True)) if len(left) == len(right) else {}
    return found


def _unexplained(comparison: Comparison, names: dict[str, str]) -> Iterator[tuple[StepPair, Difference | None]]:
    for pair in comparison.counted:
        if pair.status in ("only_left", "only_right"):
            yield pair, None
        for found in pair.differences:
            if found.status != "not_comparable" and not _follows(found, names):
                yield pair, found


def _follows(found: Difference, names: dict[str, str]) -> bool:
    if found.path.startswith(_REQUEST):
        return True
    left, right = (value_text(value, length=10_000) for value in (found.left, found.right))
    return _WORD.sub(lambda word: names.get(word[0], word[0]), left) == right


def _words(pair: StepPair, found: Difference | None) -> str:
    """`lookup_order answered "ORD-5512"  →  "ORD-5530" (order_id)`."""
    step = pair.left or pair.right
    assert step is not None
    if found is None:
        return f"only {'A' if pair.left else 'B'} has this step: {call_text(step)}"
    values = f"{value_text(found.left)}  →  {value_text(found.right)}"
    return f"{_place(step.name, step.kind, found.path)}  {values}"


def _place(name: str, kind: str, path: str) -> str:
    first, _, rest = path.partition(".")
    if kind == "model":
        return f"the answer of {name}:"
    part = {"args": "the arguments of", "result": "the answer of"}.get(first)
    return f"{part} {name}{f', {rest}' if rest else ''}:" if part else f"{name}, {path}:"
