"""Where the numbers, days, ids and addresses of an answer come from: a fact about it that accuses nobody."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sessions_app.core.judge.anomalies.reading.answer_words import words_of
from sessions_app.core.judge.anomalies.reading.statements import figures_in
from sessions_app.core.judge.anomalies.reading.written_dates import (
    days_in,
    partial_days_in,
    with_partial,
    without_days,
)
from sessions_app.core.judge.reading import has_answer, join_words, seen_messages
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.run import AgentCall, Retrieval, Run, Step, ToolCall

_READ = 20_000
"""Characters of a text."""
_MOST = 100
"""Values of an answer."""
_NAMED = 3
"""More are counted."""
_LISTED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSources:
    """Of the values of an answer that the question did not name already."""

    steps: tuple[int, ...] = ()
    """The first step that returned each of them."""
    in_no_step: tuple[str, ...] = ()
    """As the answer spells them: reckoned, rounded, known to the model, or made up."""

    def to_json(self) -> JsonObject:
        return {"steps": list(self.steps), "in_no_step": list(self.in_no_step[:_LISTED])}


def answer_sources(run: Run) -> AnswerSources:
    """None for a run without an answer or without anything but a model, or in which something may have told of values
    that was not recorded."""
    is_told = any(isinstance(step.call, ToolCall | AgentCall | Retrieval) for step in run.steps)
    if not has_answer(run) or not is_told or any(_is_unknown(step) for step in run.steps):
        return AnswerSources()
    open_ones = _values_in(words_of(run.output)[:_READ]) if run.output else {}
    for text in _asked(run) if open_ones else ():
        _take(open_ones, text)
    steps: list[int] = []
    for step in run.steps:
        if open_ones and any(_take(open_ones, text) for text in _told(step)):
            steps.append(step.index)
    _take_days_called_with(open_ones, run)
    return AnswerSources(steps=tuple(steps), in_no_step=tuple(dict.fromkeys(open_ones.values())))


def sources_in_words(sources: JsonObject) -> str:
    """`answer from steps 4 and 7 · in no step: 410`."""
    steps, unknown = sources.get("steps", []), sources.get("in_no_step", [])
    parts = [f"answer from {_numbered(list(map(str, steps)))}"] if steps else []
    if unknown:
        parts.append(f"in no step: {join_words(unknown)}" if len(unknown) <= _NAMED else _many(len(unknown)))
    return " · ".join(parts)


def _numbered(steps: list[str]) -> str:
    more = [f"{len(steps) - _NAMED} more"] if len(steps) > _NAMED else []
    return f"step{'s' if len(steps) > 1 else ''} {join_words([*steps[:_NAMED], *more])}"


def _many(values: int) -> str:
    return f"{values if values < _LISTED else f'{_LISTED} or more'} values in no step"


# --- values ------------------------------------------------------------------------------------

_Value = float | str
_WORD = re.compile(
    r"[\w.+-]+@[\w-]+\.\w[\w.-]*\w|(?<![\w-])(?!\d+[a-zA-Z]{1,3}(?![\w-]))(?=[\w-]*[a-zA-Z])(?=[\w-]*\d)[\w-]*\w",
    re.ASCII,
)
"""An address, or a word with digits and letters; `503s` and `12kg` are numbers."""
_SMALL = 10
"""Lesser numbers are said of anything."""
_DAY = re.compile(r"(?:\d{4}-\d\d|--\d\d|--)-\d\d")
_YEAR = re.compile(r"(?:19|20)\d\d")


def _values_in(text: str) -> dict[_Value, str]:
    """Each as it is spelled; a number may be read in two ways."""
    found: dict[_Value, str] = {day: day for day in days_in(text)}
    rest = without_days(text)
    found |= {word.lower(): word for word in _WORD.findall(rest)}
    for spelled in _FIGURE.findall(_WORD.sub(" ", rest)):
        is_named = not _YEAR.fullmatch(spelled)
        found |= {number: spelled for number in figures_in(spelled) if number >= _SMALL and is_named}
    figures = set(found.values())
    found |= {day: spelled for day, spelled in partial_days_in(rest).items() if spelled in figures}
    return dict(list(found.items())[:_MOST])


_FIGURE = re.compile(r"(?<![\w.,:/-])\d(?:[\d.,'\u2019\u00a0\u202f]*\d)?+(?![:/]\d)", re.ASCII)


def _take(open_ones: dict[_Value, str], text: str) -> bool:
    """Takes away what a text tells, in each way that it may be read; a price may be told in cents."""
    said = text[:_READ]
    numbers = figures_in(said) if any(isinstance(each, float) for each in open_ones) else frozenset[float]()
    names = [each for each in open_ones if isinstance(each, str)]
    words = {word.lower() for word in _WORD.findall(said)} if names else set[str]()
    words |= with_partial(days_in(said)) if any(map(_DAY.fullmatch, names)) else set()
    return _take_all(open_ones, [each for each in open_ones if _is_told(each, numbers, words)])


def _take_all(open_ones: dict[_Value, str], found: Iterable[_Value]) -> bool:
    spelled = {open_ones[each] for each in found if each in open_ones}
    for each in [each for each in open_ones if open_ones[each] in spelled]:
        del open_ones[each]
    return bool(spelled)


def _take_days_called_with(open_ones: dict[_Value, str], run: Run) -> None:
    """A day that a call was made with is in a step, although no tool told it."""
    asked = (_text(step.call.arguments)[:_READ] for step in run.steps if isinstance(step.call, ToolCall))
    for text in asked if any(isinstance(each, str) and _DAY.fullmatch(each) for each in open_ones) else ():
        _take_all(open_ones, with_partial(days_in(text)))


def _is_told(each: _Value, numbers: frozenset[float], words: set[str]) -> bool:
    return each in words if isinstance(each, str) else each in numbers or round(each * 100, 6) in numbers


def _asked(run: Run) -> Iterator[str]:
    """What users and the system say, and what earlier turns had."""
    yield from (_text(run.input), run.instructions or "", _text(run.initial_state))
    for seen in seen_messages(run):
        if seen.step == 0 or seen.parts_of("user-prompt", "system-prompt"):
            yield str([part.get("content") for part in seen.parts])


def _told(step: Step) -> Iterator[str]:
    match step.call:
        case ToolCall(result=result) | AgentCall(result=result):
            yield _text(result)
        case Retrieval(chunks=chunks):
            yield from (_text(chunk.content) for chunk in chunks or ())


def _text(payload: Payload | None) -> str:
    return "" if payload is None else payload.as_text()


def _is_unknown(step: Step) -> bool:
    return isinstance(step.call, ToolCall) and step.call.result is None and step.error is None
