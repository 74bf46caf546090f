"""Lookups that found nobody, and answers that say so or that were hoping for it, and calls that then made it."""

from __future__ import annotations

import re

from sessions_app.core.judge.anomalies.reading.answer_words import SENTENCE, answer_of, is_named, plain, question_of
from sessions_app.core.judge.reading import ended_in_error, leaves, own_tools, value_of
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run, Step, ToolCall
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


def is_made_later(run: Run, step: Step, call: ToolCall) -> bool:
    """Whether what was looked for was made then: by a call for the same thing, such as `reserve_shop` after `get_shop`,
    with all that the lookup was called with."""
    made, asked = _made(run), _asked(call)
    return bool(asked) and all(made.get(each, 0) > step.index for each in asked)


_MAKES = frozenset(
    {"create", "add", "register", "reserve", "book", "claim", "insert", "upsert", "put", "new", "open", "make", "save"}
    | {"write", "take"}
)
_WORDS = re.compile(r"[A-Z]?[a-z]+")
Asked = tuple[tuple[str, ...], str | None, JsonValue]


@once_each
def _made(run: Run) -> dict[Asked, int]:
    """What was made, by its kind and each argument, with the last step that did so."""
    calls = ((step, call) for step, call in own_tools(run) if _makes(call) and not ended_in_error(step))
    return {each: step.index for step, call in calls for each in _asked(call)}


def _makes(call: ToolCall) -> bool:
    return next(iter(_words(call)), "") in _MAKES


def _asked(call: ToolCall) -> set[Asked]:
    kind = tuple(word.removesuffix("s") for word in _words(call)[1:])
    return {(kind, key, item) for key, item in leaves(value_of(call.arguments))} if kind else set()


def _words(call: ToolCall) -> list[str]:
    return [word.lower() for word in _WORDS.findall(call.tool_name)]
