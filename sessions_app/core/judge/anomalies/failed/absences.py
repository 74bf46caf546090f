"""Lookups that found nobody, and answers that say so or that were hoping for it, and calls that then made it."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice

from sessions_app.core.judge.anomalies.failed.fallbacks import acts, name_words
from sessions_app.core.judge.anomalies.reading.answer_words import (
    SAYS_NOTHING,
    SENTENCE,
    answer_of,
    is_named,
    plain,
    question_of,
)
from sessions_app.core.judge.anomalies.reading.denials import NONE_OF
from sessions_app.core.judge.anomalies.reading.statements import is_stated
from sessions_app.core.judge.anomalies.reading.words import stems_in
from sessions_app.core.judge.reading import ended_in_error, leaves, object_of, own_tools, value_of
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each

_HOPED_FOR = re.compile(r"(?<!\w)(?:free|available|taken|in use|exists?|unused|unique|vacant|registered)(?!\w)")
_IS_FREE = re.compile(r"(?<!\w)(?:is|are|was|were)(?: still| now)? (?:free|available|unused|unique|vacant)(?!\w)")


def tells_of_absence(run: Run, call: ToolCall) -> bool:
    """Whether a sentence of the answer says of what was looked for, by its name or its kind, that there is none, or
    that it is free where the question was that."""
    asked = [(key or "", str(item)) for key, item in leaves(value_of(call.arguments)) if item not in (None, "")]
    kinds = list(name_words(call)[1:])
    names = [name.lower() for name in [*kinds, *(name for pair in asked for name in pair)] if len(name) > _SHORT]
    return any(is_named(name, sentence) for sentence in _absences(run) for name in names)


_SHORT = 3


@once_each
def _absences(run: Run) -> list[str]:
    was_hoped_for = _HOPED_FOR.search(plain(question_of(run))) is not None
    return [
        sentence
        for sentence in SENTENCE.split(plain(answer_of(run)))
        if SAYS_NOTHING.search(sentence) or (was_hoped_for and _IS_FREE.search(sentence))
    ]


def tells_of_none(run: Run, step: Step, call: ToolCall) -> bool:
    """Whether the answer says that there is none of what the tool is named for: `no TAP loyalty number` of
    `loyalty_account`. Who was to do something has more to tell."""
    kind = set[str]() if acts(step, call) else stems_in(*name_words(call))
    return any(not kind.isdisjoint(stems_in(words)) for words in NONE_OF.findall(plain(answer_of(run))))


def is_made_later(run: Run, step: Step, call: ToolCall) -> bool:
    """Whether what was looked for was made then: by another tool, for all that the lookup was called with, which is
    named for the same kind of thing, gives it a name of that kind, or one that the run's answer has."""
    kind, made = set(name_words(call)[1:]), [_by_argument(run).get(each, {}) for each in _asked(call)] or [{}]
    fewest = islice(reversed(min(made, key=len).items()), _MOST)
    later = (other for at, (_, other) in fewest if at > step.index and all(at in each for each in made))
    others = (other for other in later if other.tool_name != call.tool_name)
    return any(not kind.isdisjoint(_kinds(other)) or _gives_a_new_name(run, other) for other in others)


_MOST = 20
_UNMADE = re.compile(
    r"(?:cancel|charge|close|delete|disable|issue|mail|notify|pay|purge|refund|remove|restart|revoke|send|stop|transfer)"
    r"(?:_|[A-Z]|$)"
)
_Asked = tuple[str | None, JsonValue]


@once_each
def _by_argument(run: Run) -> dict[_Asked, dict[int, tuple[Step, ToolCall]]]:
    """Calls that went well and may have made something, by each of their arguments."""
    found: dict[_Asked, dict[int, tuple[Step, ToolCall]]] = defaultdict(dict)
    for step, call in own_tools(run):
        if value_of(call.result) and not ended_in_error(step) and not _UNMADE.match(call.tool_name):
            for each in _asked(call):
                found[each][step.index] = step, call
    return found


def _asked(call: ToolCall) -> set[_Asked]:
    return set(leaves(value_of(call.arguments))) if object_of(call.arguments) else set()


def _kinds(call: ToolCall) -> set[str]:
    """By the tool's name, and by the keys of what it gave."""
    given = (key.lower().removesuffix("_id").removesuffix("s") for key in object_of(call.result))
    return {*name_words(call)[1:], *given}


def _gives_a_new_name(run: Run, call: ToolCall) -> bool:
    asked = {str(item) for _, item in leaves(value_of(call.arguments))}
    given = (str(item) for item in object_of(call.result).values() if isinstance(item, str))
    names = (name for name in given if re.search(r"\d", name) and name not in asked)
    return any(is_stated(name, answer_of(run)) for name in islice(names, _MOST))
