"""Calls that do something, and whose answer has another day or number than the run's answer says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import failed_steps
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of, question_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import figures_in, is_stated, plain_values
from sessions_app.core.judge.anomalies.reading.written_dates import days_in
from sessions_app.core.judge.reading import has_answer, is_number, leaves, object_of, own_tools, value_of
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run, Step, ToolCall

_MOST = 20
"""Calls that are held against all that was told."""
_READ = 20_000
"""Characters of one text."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What the answer has."""

    answer: str
    figures: dict[str, list[float]]
    """By their digits, and by the whole of those with a part."""

    def has(self, day: str) -> bool:
        return day in days_in(self.answer, day[:4])

    def states(self, number: float) -> bool:
        return number in self.figures.get(_digits(number), ())

    def slips(self, number: float) -> list[float]:
        """Other numbers that it may have been meant for, where the answer does not have it too."""
        others = [*self.figures.get(_digits(number), ()), *self.figures.get(f"{number:.12g}", ())]
        return [] if number in others else [each for each in others if _is_slip(number, each)]


def other_receipts(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The answer has what was asked for, and not what came of it."""
    if not has_answer(run):
        return
    said, checked, failed = _said(run), 0, failed_steps(run)
    for step, call in own_tools(run):
        if step.index in failed or call.result is None or looks_up(step, call) or checked >= _MOST:
            continue
        message, candidates = _of_other_day(run, said, step, call)
        if message is None and not candidates:
            message, candidates = _of_other_number(run, said, step, call)
        message = message or _of_the_smaller_unit(run, said, call)
        checked += candidates
        if message:
            yield Anomaly(code="other_receipt", message=message, steps=(step.index,))


def _said(run: Run) -> _Said:
    figures: dict[str, list[float]] = defaultdict(list)
    for number in figures_in(answer_of(run)):
        figures[_digits(number)].append(number)
        if number != int(number):
            figures[f"{int(number)}"].append(number)
    return _Said(answer_of(run), figures)


# --- days --------------------------------------------------------------------------------------


def _of_other_day(run: Run, said: _Said, step: Step, call: ToolCall) -> tuple[str | None, bool]:
    """One day was asked for, and the receipt has one day, in its place or in a sentence that repeats the call."""
    asked = days_in(call.arguments.as_text()[:_READ]) if call.arguments else set[str]()
    day = next(iter(asked), "")
    told = _days_told(call, day) - {day} if len(asked) == 1 else set[str]()
    other = next(iter(told), "")
    if len(told) != 1 or not said.has(day) or said.has(other) or _may_be_a_zone(call, day, other):
        return None, False
    message = f"{step.name} was called for {day} but returned {other}; the answer says {day}"
    return (None if _is_known(run, step, other) else message), True


def _may_be_a_zone(call: ToolCall, day: str, other: str) -> bool:
    """Whether one is the day beside the other, and a time is told with it."""
    try:
        apart = date.fromisoformat(day) - date.fromisoformat(other)
    except ValueError:
        return True
    texts = (each.as_text()[:_READ] for each in (call.arguments, call.result) if each is not None)
    return abs(apart.days) == 1 and all(re.search(r"\d[T ]\d\d:\d\d", text) for text in texts)


def _days_told(call: ToolCall, day: str) -> set[str]:
    value, year = value_of(call.result), day[:4]
    if not isinstance(value, str):
        own = {key for key, item in leaves(value_of(call.arguments)) if day in days_in(str(item))}
        return {each for key, item in leaves(value) if key in own for each in days_in(str(item), year)}
    text = value[:_READ]
    sentences = (each for each in _SENTENCE.split(text) if _repeats(call, each) and not _OTHER_DAYS.search(each))
    return set() if day in days_in(text, year) else {each for sentence in sentences for each in days_in(sentence, year)}


_SENTENCE = re.compile(r"(?<=[.!?])(?<!\d\.)\s+|\n+")
"""Not behind the point of `18. März`."""
_OTHER_DAYS = re.compile(
    r"(?<!\w)(?:until|till|by|before|after|from|since|due|cancel\w*|deadline|expir\w*|deliver\w*|ship\w*|arriv\w*|next"
    r"|created|instead|moved|bis|vor|nach|ab|seit|fällig|liefer\w*|jusqu\w*|avant|après|hasta|antes|desde|até)(?!\w)",
    re.IGNORECASE,
)
"""Words of days that come with the one that was asked for."""


def _repeats(call: ToolCall, sentence: str) -> bool:
    """Whether it has another value of the call too, or little but its outcome and the day."""
    others = [item for item in plain_values(object_of(call.arguments)).values() if not days_in(str(item))]
    return len(sentence.split()) <= _SHORT or any(is_stated(item, sentence) for item in others)


_SHORT = 8


def _is_known(run: Run, step: Step, day: str) -> bool:
    """Whether anything but this receipt speaks of that day, or it is the day of the call."""
    today = step.started_at.date().isoformat() if step.started_at else ""
    others = (each for other, made in own_tools(run) if other is not step for each in (made.arguments, made.result))
    texts = [question_of(run), run.instructions or "", *(each.as_text() for each in others if each is not None)]
    return day == today or any(day in days_in(text[:_READ], day[:4]) for text in texts)


# --- numbers -----------------------------------------------------------------------------------


def _of_other_number(run: Run, said: _Said, step: Step, call: ToolCall) -> tuple[str | None, bool]:
    """The digits of a number that was told before, with the point elsewhere, or cut off at it."""
    for key, used in plain_values(object_of(call.arguments)).items():
        number = _number(used)
        slips = [] if number is None else said.slips(number)
        if number is None or not slips or call.result is None or number not in figures_in(call.result.as_text()):
            continue
        told = next((each for each in slips if _was_told(run, step, key, number, each)), None)
        was_told = f"{told:.12g} was told before and is in the answer" if told is not None else ""
        return (f"{step.name} was called with {key} {number:.12g}; {was_told}" if was_told else None), True
    return None, False


def _of_the_smaller_unit(run: Run, said: _Said, call: ToolCall) -> str | None:
    """So many cents were asked for, and the answer has as many dollars; not where the question and the answer have as
    many of something else, as of points."""
    for key, used in plain_values(object_of(call.arguments)).items():
        number = _number(used) if _CENTS.search(key) else None
        if not number or not said.states(number) or said.states(number / 100) or _IN_CENTS.search(said.answer):
            continue
        if (counted := _counted(number, said.answer)) and counted <= _counted(number, question_of(run)):
            continue
        called = f"{call.tool_name} was called with {key} {number:.12g}, which is {number / 100:.12g}"
        return f"{called}; the answer says {number:.12g}"
    return None


def _counted(number: float, text: str) -> set[str]:
    """What a text has so many of; money counts as nothing that could be meant instead."""
    found = (match for match in _COUNTED.finditer(text) if number in figures_in(match[1]))
    return {"" if match[0][0] in "$€£¥₹" or _MONEY.match(match[2]) else match[2].lower() for match in found} - {""}


_COUNTED = re.compile(r"[$€£¥₹]?(?<![\w.,-])(\d[\d.,]*)(?: ?([$€£¥₹]|[^\W\d_]*))")
_MONEY = re.compile(
    r"[$€£¥₹元円]|(?:eur|usd|gbp|chf|jpy|cny|pln|sek|nok|dkk|inr|brl|mxn|z[lł]|kr)(?![a-z])|euros?|dol+ars?|d[oó]lar\w*|pounds?"
    r"|franken|francs?|pesos?|rea(?:l|is)|yen|rupees?|z[lł]ot\w*|kron\w*",
    re.IGNORECASE,
)
_CENTS = re.compile(
    r"(?:^|_|(?<=[a-z])(?=[A-Z]))(?:[Cc]ents?|[Mm]inor(?:_?[Uu]nits?)?|[Pp]ence|[Cc]entimes?|[Cc][ée]ntimos?|[Cc]entavos?"
    r"|[Cc]entesimi|[Rr]appen|[Gg]rosz\w*|[øö]re)(?:$|_)|分$|銭$"
)
_IN_CENTS = re.compile(
    r"\d ?(?:¢|ct|c(?!\w)|cents?|pence|centimes?|c[éêe]ntimos?|centavos?|centesimi|rappen|grosz\w*|[øö]re|分|銭)",
    re.IGNORECASE,
)


def _number(item: JsonValue) -> float | None:
    if is_number(item):
        return float(item)
    return float(item) if isinstance(item, str) and re.fullmatch(r"\d{1,12}(?:\.\d+)?", item) else None


def _is_slip(number: float, other: float) -> bool:
    """Three or more of the same digits, the point elsewhere; or the whole of a number with a part."""
    is_moved = _digits(number) == _digits(other) and len(_digits(number)) >= _DIGITS
    return is_moved or (number == int(other) and number >= _WHOLE)


_DIGITS = 3
_WHOLE = 10


def _digits(number: float) -> str:
    return f"{number:.12g}".replace(".", "").strip("0")


def _was_told(run: Run, step: Step, key: str, number: float, other: float) -> bool:
    """Something had told the other one, and nothing this one. It may be in another unit, or rounded: unless the point
    moved by one place, the unit in the argument's name stands behind a number of what told it."""
    units = "|".join(part for part in re.findall(r"[a-z]+", key.lower()) if len(part) <= _UNIT)
    in_unit = re.compile(rf"\d ?(?:{units})(?![a-z])|_(?:{units})\"") if units else None
    before = [made for earlier, made in own_tools(run) if earlier.index < step.index]
    payloads = (each for made in before for each in (made.arguments, made.result) if each is not None)
    is_known = False
    for text in (question_of(run), *(each.as_text()[:_READ] for each in payloads)):
        if number in (figures := figures_in(text)):
            return False
        is_same_unit = in_unit is not None and in_unit.search(text.lower()) is not None
        is_known |= other in figures and (_by_one_place(number, other) or is_same_unit)
    return is_known


_UNIT = 3
"""Letters at most: kg, ml, eur."""


def _by_one_place(number: float, other: float) -> bool:
    return abs(max(number, other) / min(number, other) - 10) < 1e-6
