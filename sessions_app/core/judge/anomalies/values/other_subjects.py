"""A value that was read of one thing, given as the reason for what was done to another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.judge.anomalies.reading.answer_words import question_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import (
    figures_in,
    is_stated,
    number_or_name,
    plain_values,
    statements,
)
from sessions_app.core.judge.anomalies.values.other_values import fields
from sessions_app.core.judge.reading import has_answer, is_number, leaves, object_of, own_tools, value_of
from sessions_app.core.run import Run, Step

MANY = 3
"""Things of which one tool told."""
_MOST = 20
"""Things that stand out are held against those that were acted on."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A number that a tool told of a thing, in one place of its answers."""

    step: Step
    subject: str
    number: float


def other_subjects(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A limit of the question lies between the two; nothing was done to the one beyond it, and the answer, which cites
    that one's value, does not name the other."""
    found: dict[int, _Pair] = {}
    for one, other, step in _confused(run) if has_answer(run) else ():
        if not has_failed(step) and step.index > max(one.step.index, other.step.index):
            found.setdefault(step.index, (one, other, step))
    for at, (one, other, step) in islice(found.items(), _MOST):
        if not _are_tied(run, one.subject, other.subject):
            message = (
                f"{step.name} was called for {other.subject}, for which {other.step.name} had returned "
                f"{other.number:g}; the {one.number:g} in the answer belongs to {one.subject}"
            )
            yield Anomaly(code="other_subject", message=message, steps=(at,))


_Pair = tuple[_Reading, _Reading, Step]
"""The one with the value, the other, and the call that acted on that."""


def _confused(run: Run) -> Iterator[_Pair]:
    limits = figures_in(f"{question_of(run)}\n{run.instructions or ''}")
    places = _readings(run) if limits else []
    acted, said = _acted_on(run) if places else {}, "\n".join(statements(run))
    for readings in places:
        cited = [each for each in _cited(run, readings, said) if each.subject not in acted][:_MOST]
        others = [each for each in readings if cited and each.subject in acted and _is_silent_of(run, each, said)]
        for one, other in ((one, other) for one in cited for other in others[:_MOST]):
            low, high = sorted((one.number, other.number))
            if any(low < limit < high for limit in limits):
                yield one, other, acted[other.subject]


def _readings(run: Run) -> list[list[_Reading]]:
    """By tool, argument and place, the numbers of the things that it was called for."""
    found: dict[tuple[str, str, str | int], dict[str, _Reading]] = defaultdict(dict)
    for step, call in own_tools(run):
        asked = plain_values(object_of(call.arguments))
        told = fields(call.result) if looks_up(step, call) and not has_failed(step) else {}
        numbers = {place: number for place, value in told.items() if is_number(number := number_or_name(value))}
        for key, item in asked.items():
            for place, number in numbers.items():
                found[call.tool_name, key, place][str(item)] = _Reading(step, str(item), number)
    return [list(readings.values()) for readings in found.values() if len(readings) >= MANY]


def _acted_on(run: Run) -> dict[str, Step]:
    """The first call that does something for each thing, or tries to."""
    found: dict[str, Step] = {}
    for step, call in own_tools(run):
        if not looks_up(step, call):
            for _, item in leaves(value_of(call.arguments)):
                found.setdefault(str(item), step)
    return found


def _cited(run: Run, readings: list[_Reading], said: str) -> list[_Reading]:
    """Those whose number is in the answer, and of no other thing."""
    often = Counter(each.number for each in readings)
    figures = figures_in(said) - figures_in(question_of(run)) - _COUNTS
    return [each for each in readings if each.number in figures and often[each.number] == 1]


_COUNTS = frozenset(map(float, range(32)))
"""And days; a reading may well be above."""


def _is_silent_of(run: Run, each: _Reading, said: str) -> bool:
    """The answer neither names it nor tells its number, and the question does not name it."""
    is_named = is_stated(each.subject, said) or is_stated(each.subject, question_of(run))
    return not is_named and not is_stated(each.number, said)


def _are_tied(run: Run, one: str, other: str) -> bool:
    """Whether an answer names both, as that of a pump names the one that stands by."""
    texts = (call.result.as_text() for _, call in own_tools(run) if call.result is not None)
    return any(is_stated(one, text) and is_stated(other, text) for text in texts)
