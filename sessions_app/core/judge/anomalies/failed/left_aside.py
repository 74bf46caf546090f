"""Lookups of something that is not there and on which nothing depended, such as the preferences of a user."""

from __future__ import annotations

import re

from sessions_app.core.judge.anomalies.failed.failures import failed_steps, is_absent
from sessions_app.core.judge.anomalies.failed.fallbacks import name_words
from sessions_app.core.judge.anomalies.reading.answer_words import plain, question_of
from sessions_app.core.judge.anomalies.reading.languages import is_in_english
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import is_stated, plain_values, statements
from sessions_app.core.judge.anomalies.reading.vocabulary import ASKS_LEAVE
from sessions_app.core.judge.anomalies.reading.words import stems_in
from sessions_app.core.judge.reading import leaves, object_of, own_tools, value_of
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each


def is_left_aside(run: Run, step: Step, call: ToolCall) -> bool:
    """Whether the run went on without it, and neither the question nor the answer has a word of what was looked for or
    what it alone was asked; the answer may say that the default was taken. In English, as the names of tools mostly
    are."""
    is_lookup = looks_up(step, call) and not ASKS_LEAVE.search(call.tool_name) and is_absent(step, call)
    if not is_lookup or not is_in_english(run) or _last_that_went_well(run) < step.index:
        return False
    kind = stems_in(*name_words(call)[1:])
    names = [item for item in plain_values(object_of(call.arguments)).values() if str(item) not in _known(run)]
    return bool(kind) and not any(_is_about(text, kind, names) for text in _said(run))


def _is_about(text: str, kind: set[str], names: list[JsonValue]) -> bool:
    """Also where a word begins with the kind, as `username` does."""
    return any(stem.startswith(tuple(kind)) for stem in stems_in(text)) or any(is_stated(name, text) for name in names)


_DEFAULT = re.compile(r"(?<!\w)(?:defaults?|standard|usual)(?!\w)")


@once_each
def _said(run: Run) -> list[str]:
    return [question_of(run), *(each for each in statements(run) if not _DEFAULT.search(plain(each)))]


@once_each
def _went_well(run: Run) -> list[tuple[Step, ToolCall]]:
    return [pair for pair in own_tools(run) if value_of(pair[1].result) and pair[0].index not in failed_steps(run)]


def _last_that_went_well(run: Run) -> int:
    return max((step.index for step, _ in _went_well(run)[-1:]), default=0)


@once_each
def _known(run: Run) -> set[str]:
    """What other calls were asked or told."""
    payloads = (each for _, call in _went_well(run) for each in (call.arguments, call.result))
    return {str(item) for payload in payloads for _, item in leaves(value_of(payload))}
