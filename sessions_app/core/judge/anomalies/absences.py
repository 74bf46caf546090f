"""Lookups that found nobody, and answers that say so or that were hoping for it."""

from __future__ import annotations

import re

from sessions_app.core.judge.anomalies.answer_words import SENTENCE, answer_of, is_named, plain, question_of
from sessions_app.core.judge.reading import leaves, value_of
from sessions_app.core.run import Run, ToolCall
from sessions_app.core.shared_values import once_each

_HOPED_FOR = re.compile(r"(?<!\w)(?:free|available|taken|in use|exists?|unused|unique|vacant|registered)(?!\w)")
_IS_FREE = re.compile(r"(?<!\w)(?:is|are|was|were)(?: still| now)? (?:free|available|unused|unique|vacant)(?!\w)")
_IS_ABSENT = re.compile(
    r"(?<!\w)(?:no|not|never|nobody|none|\w+n't)(?: \w+){0,2}?"
    r" (?:taken|found|exists?|registered|in use|used|such)(?!\w)"
)


def tells_of_absence(run: Run, call: ToolCall) -> bool:
    """Whether a sentence of the answer says of what was looked for that there is none, or that it is free where the
    question was that."""
    asked = [(key or "", str(item)) for key, item in leaves(value_of(call.arguments)) if item not in (None, "")]
    names = [name.lower() for pair in asked for name in pair if len(name) > _SHORT]
    return any(is_named(name, sentence) for sentence in _absences(run) for name in names)


_SHORT = 3


@once_each
def _absences(run: Run) -> list[str]:
    answer = plain(answer_of(run))
    was_hoped_for = _HOPED_FOR.search(plain(question_of(run))) is not None
    return [
        sentence
        for sentence in SENTENCE.split(answer)
        if _IS_ABSENT.search(sentence) or (was_hoped_for and _IS_FREE.search(sentence))
    ]
