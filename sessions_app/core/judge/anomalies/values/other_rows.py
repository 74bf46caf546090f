"""Calls that carry out the rows of a list, one of them with another value than its row."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.judge.anomalies.reading.answer_words import SENTENCE, question_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import is_stated, plain_values, statements
from sessions_app.core.judge.reading import has_answer, is_number, leaves, listed_rows, object_of, own_tools, value_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step

MANY = 4
"""Calls of one tool that are as their rows."""
_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class _Row:
    values: JsonObject
    listing: Step


@dataclass(frozen=True, slots=True)
class _Copied:
    """A call that carries out a row."""

    step: Step
    row: _Row
    place: tuple[str, JsonValue]
    """By which the row is known."""
    other: tuple[str, JsonValue] | None
    """The one value that the row has not."""


def other_rows(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Nothing had told of the other value, no later call has the right one, and the answer does not speak of it."""
    copied: dict[str, list[_Copied]] = defaultdict(list)
    for each in _copied(run) if has_answer(run) else ():
        copied[each.step.name].append(each)
    for calls in copied.values():
        odd = [each for each in calls if each.other]
        right = {each.place for each in calls if not each.other}
        for each in odd if len(odd) == 1 and len(calls) > MANY else ():
            if each.other and each.place not in right and not _is_meant(run, each, calls):
                (key, used), (name, place) = each.other, each.place
                message = (
                    f"{each.step.name} was called with {key} {used} for {name} {place}; "
                    f"{each.row.listing.name} lists {each.row.values[key]}"
                )
                yield Anomaly(code="other_row", message=message, steps=(each.step.index,))


def _copied(run: Run) -> Iterator[_Copied]:
    """A row is known by a value that no other row has; a list that was changed between tells nothing."""
    rows: dict[tuple[str, JsonValue], _Row | None] = {}
    room = _ROWS
    for step, call in own_tools(run):
        asked = plain_values(object_of(call.arguments))
        if rows and len(asked) > 1 and not looks_up(step, call) and not has_failed(step):
            yield from _as_its_row(step, asked, rows)
        listed = listed_rows(value_of(call.result))[:room]
        room -= len(listed)
        for values in map(plain_values, listed):
            for place in values.items():
                known = rows.setdefault(place, _Row(values, step))
                if known is None or known.values != values:
                    rows[place] = None


def _as_its_row(step: Step, asked: JsonObject, rows: dict[tuple[str, JsonValue], _Row | None]) -> Iterator[_Copied]:
    known = [(place, row) for place in asked.items() if (row := rows.get(place)) is not None]
    if not known or any(row.values != known[0][1].values for _, row in known):
        return
    place, row = known[0]
    shared = [(key, item) for key, item in asked.items() if key in row.values]
    others = [(key, item) for key, item in shared if not _is_same(row.values[key], item)]
    has_figures = all(re.search(r"\d", f"{row.values[key]} {item}") for key, item in others)
    if len(shared) > 1 and len(others) < 2 and has_figures:
        yield _Copied(step, row, place, others[0] if others else None)


def _is_same(listed: JsonValue, used: JsonValue) -> bool:
    """Also where it was rounded, or is a part of the other, or has other marks and case than were listed."""
    if is_number(listed) and is_number(used):
        return any(round(listed, digits) == used for digits in (15, 2, 1, 0))
    one, other = (re.sub(r"[^\w.,]+", " ", str(item)) for item in (listed, used))
    return is_stated(listed, str(used)) or is_stated(used, str(listed)) or is_stated(one, other)


def _is_meant(run: Run, each: _Copied, calls: list[_Copied]) -> bool:
    """Something told of the other value before, or question or answer speak of it, or of this one thing."""
    used = each.other[1] if each.other else None
    before = (call for step, call in own_tools(run) if step.index < each.step.index)
    told = {item for call in before for _, item in leaves([value_of(call.arguments), value_of(call.result)])}
    said = [*statements(run), *SENTENCE.split(question_of(run)), *SENTENCE.split(run.instructions or "")]
    others = [other.place[1] for other in calls[:_NAMED] if other is not each]
    return used in told or any(
        is_stated(used, text)
        or (is_stated(each.place[1], text) and not any(is_stated(other, text) for other in others))
        for text in said
    )


_NAMED = 20
"""Other things that a sentence about all of them names."""
