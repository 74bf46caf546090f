"""Calls that do something on another day than the one that question and answer speak of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of, plain, question_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.values.owners import questions
from sessions_app.core.judge.reading import has_answer, leaves, own_tools, value_of
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run, ToolCall


def other_dates(run: Run, rules: Rules) -> Iterator[Anomaly]:
    day = _the_day(run) if has_answer(run) else None
    if day is None or not (used := _on_others(run, day)):
        return
    told = _written_days(f"{run.instructions or ''}\n{questions(run)}", year=day[:4])
    for step, call in own_tools(run):
        other = used.get(step.index)
        if other and other not in told:
            message = f"{step.name} was called for {other}; the question and the answer name {day}"
            yield Anomaly(code="other_date", message=message, steps=(step.index,))
        told |= _written_days("" if call.result is None else call.result.as_text(), year=day[:4])


def _on_others(run: Run, day: str) -> dict[int, str]:
    """Steps that do something on one other day, under a name that has the wanted one in another call."""
    dated = [(step, dict(days)) for step, call in own_tools(run) if (days := list(_days(call.arguments)))]
    places = {key for _, days in dated for key, each in days.items() if each == day}
    return {
        step.index: next(iter(days.values()))
        for step, days in dated
        if len(set(days.values())) == 1
        and day not in days.values()
        and not places.isdisjoint(days)
        and isinstance(step.call, ToolCall)
        and not looks_up(step, step.call)
    }


_ISO = re.compile(r"(?<![\w-])(20\d\d-[01]\d-[0-3]\d)(?![\d-])")
_ARGUMENT = re.compile(r"(20\d\d-[01]\d-[0-3]\d)(?:[T ][\d:.]+)?")
"""Without a zone, in which the day may be another."""


def _days(arguments: Payload | None) -> Iterator[tuple[str, str]]:
    for key, item in leaves(value_of(arguments)):
        found = _ARGUMENT.fullmatch(item) if isinstance(item, str) else None
        if key and found:
            yield key, found[1]


_MONTHS = [
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
]
_MONTH = "|".join(rf"{name[:3]}(?:{name[3:]})?" for name in _MONTHS)
_NAMED = re.compile(
    rf"(?<!\w)(?:(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})|({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?)(?!\w)"
    r"(?:,? (20\d\d))?"
)
_SEVERAL = re.compile(
    r"(?<!\w)(?:before|after|prior|earlier|later|until|till|through|since|eve|days?|weeks?|months?|years?|remind\w*"
    r"|tomorrow|today|yesterday|next|follow\w*|due)(?!\w)"
)
"""Words by which another day follows from the one that is named."""


def _the_day(run: Run) -> str | None:
    """The one day that the question names, where the answer names that one and no other."""
    asked, answer = question_of(run), answer_of(run)
    days = _written_days(asked)
    day = next(iter(days), "")
    if len(days) != 1 or _SEVERAL.search(plain(asked)) or _SEVERAL.search(plain(answer)):
        return None
    return day if _written_days(answer, year=day[:4]) == days else None


def _written_days(text: str, year: str = "") -> set[str]:
    """As 2026-12-11, 11 December 2026 or December 11; without a year only where one is given."""
    found = set(_ISO.findall(text))
    for day, month, other_month, other_day, of in _NAMED.findall(plain(text)):
        number = next(at for at, name in enumerate(_MONTHS, start=1) if name.startswith((month or other_month)[:3]))
        if of or year:
            found.add(f"{of or year}-{number:02}-{int(day or other_day):02}")
    return found
