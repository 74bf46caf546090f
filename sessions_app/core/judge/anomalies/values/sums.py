"""Another sum than was told, and a total that is not the sum of its lines."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of
from sessions_app.core.judge.reading import (
    as_object,
    first_requests,
    has_answer,
    is_number,
    leaves,
    own_tools,
    text_of,
    value_of,
)
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import ModelCall, Run, Step, ToolCall

CENT = 0.006
"""Sums that differ by less are the same, rounded."""
SUM_KEYS = frozenset({"total", "amount", "sum", "grand_total", "subtotal", "price", "cost"})


def sums_contradicted(run: Run, rules: Rules) -> Iterator[Anomaly]:
    for step, key, number, told in other_sums(run):
        message = f"{step.name} was called with {key} {number:g}; an earlier answer gives {told:g}"
        yield Anomaly(code="other_sum", message=message, steps=(step.index,))


def other_sums(run: Run) -> Iterator[tuple[Step, str, float, float]]:
    """Steps that go on with another sum than was told of the same thing: step, key, its number, the one that was told.
    A number that was recorded anywhere, or that one recorded number makes of the told one, is in order; of several
    things each has a sum of its own, and none is that of all."""
    if not any(_sums(value_of(call.arguments)) for _, call in own_tools(run)):
        return
    told: dict[tuple[str, str], _ByQuestion] = defaultdict(dict)
    known, alone = _numbers_in(text_of(run.input) or ""), list[float]()
    for step, call in own_tools(run):
        arguments, result = value_of(call.arguments), value_of(call.result)
        about = frozenset(item for _, item in leaves(arguments) if isinstance(item, str))
        for key, number in _sums(arguments):
            before = list(_merged(told.get((key, item), {}) for item in about).values())
            if len(before) == 1 and number not in known and not made_of(number, before[0], alone):
                yield step, key, number, before[0]
        known |= {item for _, item in leaves([arguments, result]) if is_number(item)}
        for item in (item for value in (arguments, result) for item in as_object(value).values() if is_number(item)):
            insort(alone, item)
        for key, number in _sums(result):
            for sums in (told[key, item] for item in about):
                if about in sums or len(sums) < _SEVERAL:
                    sums[about] = number


_ByQuestion = dict[frozenset[str], float]
"""The newest sum that a tool told, by what it was asked."""
_SEVERAL = 2


def _merged(found: Iterable[_ByQuestion]) -> _ByQuestion:
    return {about: number for sums in found for about, number in sums.items()}


def _sums(value: JsonValue) -> list[tuple[str, float]]:
    return [(key, item) for key, item in as_object(value).items() if key in SUM_KEYS and is_number(item)]


def made_of(number: float, told: float, others: list[float]) -> bool:
    """By adding, taking away, multiplying, dividing or a percentage. The others are in order: of very many, those that
    would make it are looked up and not tried one after the other."""
    near = max(CENT, abs(number) * 1e-9)
    low, high = number - near, number + near
    makings = ((told, 1), (told, -1), (told, told / 100), (told, -told / 100), (told, told), (0, told))
    if any(_has_between(others, (low - start) / step, (high - start) / step) for start, step in makings if step):
        return True
    return low * high > 0 and _has_between(others, told / low, told / high)


def _has_between(ordered: list[float], *ends: float) -> bool:
    at = bisect_left(ordered, min(ends))
    return at < len(ordered) and ordered[at] <= max(ends)


PLAIN_NUMBER = re.compile(r"(?<![\w-])\d+(?:\.\d+)?(?![\w-])")
"""And no part of an id."""


def _numbers_in(text: str) -> set[float]:
    return {float(found) for found in re.findall(r"\d+(?:\.\d+)?", text)}


def total_contradicted(run: Run, rules: Rules) -> Iterator[Anomaly]:
    found = total_beside_lines(run) if has_answer(run) else None
    if found is not None:
        step, said, total = found
        message = f"The answer gives a total of {said:.12g}, but the lines of {step.name} add up to {total:.12g}"
        yield Anomaly(code="other_total", message=message, steps=(step.index,), level="info")


_TOTAL = re.compile(r"(?<!\w)(?:total|totals|sum|altogether|in all)(?!\w)")


_AMOUNT = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


def total_beside_lines(run: Run) -> tuple[Step, float, float] | None:
    """The step that gave lines with one number each, the total in the answer, and their sum. Only where that call is
    the run's one source of numbers, and the answer has this one number alone."""
    answer = answer_of(run)
    amounts = [word for word in _words_with_digits(answer) if word not in _words_with_digits(text_of(run.input) or "")]
    if len(amounts) != 1 or not _TOTAL.search(answer.lower()) or run.prior is not None:
        return None
    tools = [(step, call) for step, call in own_tools(run) if call.result is None or _has_number(call.result)]
    if len(tools) != 1:
        return None
    step, call = tools[0]
    amount, lines = _amount(amounts[0]), _lines(value_of(call.result))
    if amount is None or len(lines) < 2 or _has_numbers_beside(run, call) or amount in {*lines, float(len(lines))}:
        return None
    return None if _are_some_of(lines, amount) else (step, amount, sum(lines))


def _are_some_of(lines: list[float], amount: float) -> bool:
    """Whether some of the lines, or all, make it, as those of the largest two; of many, nobody knows."""
    sums = {0.0}
    for line in lines[:_LINES]:
        sums |= {each + line for each in sums}
    return any(abs(each - amount) < CENT for each in (sum(lines), *sums))


_LINES = 10


def _words_with_digits(text: str) -> list[str]:
    return [word.rstrip(".,") for word in re.findall(r"[\w.,-]*\d[\w.,-]*", text)]


def _has_number(result: Payload) -> bool:
    return any(
        is_number(item) or (isinstance(item, str) and PLAIN_NUMBER.search(item)) for _, item in leaves(value_of(result))
    )


def _has_numbers_beside(run: Run, call: ToolCall) -> bool:
    """In the question, the instructions, or what the tool was asked; steps of other kinds may hold any."""
    said = [part.get("content") for seen in first_requests(run) for part in seen.parts]
    asked = [item for _, item in leaves(value_of(call.arguments))]
    others = any(not isinstance(step.call, ModelCall | ToolCall) for step in run.steps)
    return others or bool(PLAIN_NUMBER.search(f"{text_of(run.input) or ''} {run.instructions or ''} {said} {asked}"))


def _amount(word: str) -> float | None:
    number = word.rstrip(".,")
    return float(number.replace(",", "")) if _AMOUNT.fullmatch(number) else None


def _lines(value: JsonValue) -> list[float]:
    """The numbers of records that stand alone in an answer and have one each, all under one name."""
    rows = next(iter(value.values()), None) if isinstance(value, dict) and len(value) == 1 else value
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return []
    found = [[(key, item) for key, item in leaves(row) if is_number(item)] for row in rows]
    is_plain = all(len(each) == 1 for each in found) and len({key for each in found for key, _ in each}) == 1
    return [float(item) for each in found for _, item in each] if is_plain else []
