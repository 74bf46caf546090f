"""Days that a text names, in the languages whose answers are read."""

from __future__ import annotations

import re

_NAMES = (
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "jan feb mar apr may jun jul aug sep oct nov dec",
)
_MONTHS = {name: at for line in _NAMES for at, name in enumerate(line.split(), start=1)}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ISO = re.compile(r"(?<![\w-])(20\d\d)-([01]\d)-([0-3]\d)(?![\d-])")
_DOTTED = re.compile(r"(?<![\d.])([0-3]?\d)\.([01]?\d)\.(20\d\d)(?!\d)")
_CJK = re.compile(r"(?:(20\d\d) ?年 ?)?([01]?\d) ?月 ?([0-3]?\d) ?日")
_NAMED = re.compile(
    rf"(?<!\w)(?:([0-3]?\d)(?:st|nd|rd|th|er|\.)?(?: (?:of|de))? ({_MONTH})|({_MONTH})\.? ([0-3]?\d)(?:st|nd|rd|th)?)"
    r"(?!\w)(?:,?(?: de)? (20\d\d))?"
)


def days_in(text: str, year: str = "") -> set[str]:
    """As 2026-12-11, 11.12.2026, 12月11日, 11 December 2026 or December 11; without a year only where one is given."""
    found = {(y, m, d) for y, m, d in _ISO.findall(text)}
    found |= {(y, m, d) for d, m, y in _DOTTED.findall(text)} | {(y or year, m, d) for y, m, d in _CJK.findall(text)}
    for day, month, other_month, other_day, of in _NAMED.findall(text.lower()) if any(map(str.isdigit, text)) else ():
        found.add((of or year, str(_MONTHS[month or other_month]), day or other_day))
    return {f"{y}-{int(m):02}-{int(d):02}" for y, m, d in found if y}


def without_days(text: str) -> str:
    """For the numbers that are left."""
    return _ANY_DAY.sub(" ", text) if any(map(str.isdigit, text)) else text


_ANY_DAY = re.compile(
    "|".join(re.sub(r"\((?!\?)", "(?:", each.pattern) for each in (_ISO, _DOTTED, _CJK, _NAMED)), re.IGNORECASE
)

_WEEKDAYS = (
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend"
    "|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo"
    "|(?:segunda|terça|quarta|quinta|sexta)(?:-feira)?|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica"
)
_OF_A_WEEK = re.compile(
    rf"(?<!\w)(?:{_WEEKDAYS})\.?,?(?: (?:the|den|dem|le|el|dia))? ([12]\d|3[01])(?![\d:/%])(?!\.\d)"
)
_OF_A_YEAR = re.compile(r"(?<![\w.,:/-])(([0-3]?\d)\.(1[0-2]|0?[1-9]))(?![\d.,:/]*\d)")


def partial_days_in(text: str) -> dict[str, str]:
    """Without a year, or a month, as they are spelled: `27.11.` as --11-27, and `Friday 27` as ---27."""
    found = {f"--{int(month):02}-{int(day):02}": spelled for spelled, day, month in _OF_A_YEAR.findall(text)}
    return found | {f"---{day}": day for day in _OF_A_WEEK.findall(text.lower())}


def with_partial(days: set[str]) -> set[str]:
    """Days, and what is left of each without its year and its month."""
    return {each for day in days for each in (day, f"--{day[5:]}", f"---{day[8:]}")}
