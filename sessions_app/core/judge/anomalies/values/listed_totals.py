"""Totals that are not the sum of what is listed beside them: of a call, or of the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of
from sessions_app.core.judge.anomalies.values.sums import CENT, PLAIN_NUMBER, SUM_KEYS, made_of
from sessions_app.core.judge.reading import (
    has_answer,
    is_number,
    leaves,
    listed_rows,
    main_models,
    own_tools,
    text_of,
    value_of,
)
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step

_MOST = 20

# --- of a call ---------------------------------------------------------------------------------


def totals_of_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A call with the ids of things and their total, where the amount of each was told before."""
    for step, key, number, ids, total in other_totals(run):
        amounts = f"the {len(ids)} amounts from {ids[0]} to {ids[-1]} add up to {total:.12g}"
        message = f"{step.name} was called with {key} {number:.12g}; {amounts}"
        yield Anomaly(code="other_sum", message=message, steps=(step.index,))


@dataclass(frozen=True, slots=True)
class _Listed:
    """A call that names things and one amount for all of them, and no other number."""

    ids: tuple[str, ...]
    key: str
    amount: float


def other_totals(run: Run) -> Iterator[tuple[Step, str, float, tuple[str, ...], float]]:
    """A number that was recorded anywhere else, or that makes the one of the other, is in order. Only the first ones:
    each is held against all that was told."""
    listing = {step.index: found for step, call in own_tools(run) if (found := _listed(value_of(call.arguments)))}
    amounts: dict[str, set[tuple[float, str]]] = {}
    checks = 0
    others = [float(found) for found in PLAIN_NUMBER.findall(text_of(run.input) or "")] if listing else []
    for step, call in own_tools(run) if listing else ():
        found = listing.get(step.index)
        total = _total_of(found.ids, amounts) if found else None
        if found and total is not None and abs(total - found.amount) > CENT and checks < _MOST:
            checks += 1
            more = [amount for each, told in amounts.items() if each not in found.ids for amount, _ in told]
            if not _is_made_of(found.amount, total, sorted([*others, *more])):
                yield step, found.key, found.amount, found.ids, total
        for record in _records(value_of(call.result)):
            told = {(float(item), str(record.get("currency"))) for key, item in record.items() if _is_sum(key, item)}
            for name in _ids_in(record) if told else ():
                amounts.setdefault(name, set()).update(told)
            has_place = any(_ids_in(record))
            others += [
                float(item)
                for key, item in record.items()
                if is_number(item) and not (has_place and _is_sum(key, item))
            ]


def _is_made_of(amount: float, total: float, others: list[float]) -> bool:
    return made_of(amount, total, others) or made_of(amount, 0, others)


def _listed(arguments: JsonValue) -> _Listed | None:
    if not isinstance(arguments, dict):
        return None
    lists = [item for item in arguments.values() if isinstance(item, list) and len(item) > 1]
    numbers = [(key, float(item)) for key, item in leaves(arguments) if is_number(item)]
    ids = tuple(item for item in lists[0] if isinstance(item, str) and re.search(r"\d", item)) if lists else ()
    if len(lists) != 1 or len(numbers) != 1 or len(set(ids)) != len(lists[0]) or numbers[0][0] not in SUM_KEYS:
        return None
    return _Listed(ids, str(numbers[0][0]), numbers[0][1])


def _total_of(ids: tuple[str, ...], amounts: dict[str, set[tuple[float, str]]]) -> float | None:
    """Where each has one amount, all in one currency."""
    found = [next(iter(told)) for each in ids if len(told := amounts.get(each, set())) == 1]
    is_whole = len(found) == len(ids) and len({currency for _, currency in found}) == 1
    return sum(amount for amount, _ in found) if is_whole else None


def _records(result: JsonValue) -> list[JsonObject]:
    return [result, *listed_rows(result)] if isinstance(result, dict) else listed_rows(result)


def _ids_in(record: JsonObject) -> Iterator[str]:
    yield from (item for item in record.values() if isinstance(item, str) and re.search(r"\d", item))


def _is_sum(key: str, item: JsonValue) -> bool:
    return key in SUM_KEYS and is_number(item)


# --- of the answer -----------------------------------------------------------------------------


def totals_of_the_answer(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The answer lists what makes its total, and it does not."""
    answer = answer_of(run)
    last = tuple(step.index for step, _ in main_models(run)[-1:])
    for said, total in totals_beside_addends(answer) if has_answer(run) else ():
        message = f"The answer gives a total of {said:.12g}, but its items add up to {total:.12g}"
        yield Anomaly(code="other_total", message=message, steps=last)


_AMOUNT = re.compile(r"[€$£]\s?\d[\d,]*(?:\.\d+)?|(?<![\w.,-])\d[\d,]*\.\d\d(?!\d)")
_TOTAL_BEFORE = re.compile(r"(?<!\w)total(?: [\w-]+){0,5}:? *(?:EUR|USD|GBP|CHF)? *$", re.IGNORECASE)
_TOTAL_BEHIND = re.compile(
    r" *(?:EUR|USD|GBP|CHF|euros?|dollars?)? *(?:in total|in all|altogether)(?!\w)", re.IGNORECASE
)
_NOT_ADDED = re.compile(
    r"(?<!\w)(?:per|each|every|night\w*|of which|incl\w*|discount\w*|minus|less|refund\w*|subtotal|sub-total|net|gross"
    r"|tax|vat|paid|due|left|remain\w*|average|instead|before|after|from|sav\w*)(?!\w)|[×*%@]",
    re.IGNORECASE,
)
"""Words of numbers that do more than add up."""


def totals_beside_addends(answer: str) -> Iterator[tuple[float, float]]:
    """Of sentences that give one total and the amounts that make it, and nothing else that counts: the two sums."""
    for passage in re.split(r"(?<=[.!?])\s+|\n\s*\n", answer):
        found = list(_AMOUNT.finditer(passage))
        totals = [at for at, amount in enumerate(found) if _is_total(passage, amount)]
        rest = re.sub(r"[A-Za-z]+[-_]?\d+", "", _AMOUNT.sub("", passage))
        if len(found) < 3 or len(totals) != 1 or totals[0] not in (0, len(found) - 1) or re.search(r"\d", rest):
            continue
        said, addends = found[totals[0]], [each for at, each in enumerate(found) if at != totals[0]]
        between = (
            passage[said.end() : addends[0].start()] if totals[0] == 0 else passage[addends[-1].end() : said.start()]
        )
        total = sum(map(_number, addends))
        if re.search(r"[:=(\n]", between) and not _NOT_ADDED.search(rest) and abs(total - _number(said)) > CENT:
            yield _number(said), total


def _is_total(passage: str, amount: re.Match[str]) -> bool:
    before = passage[max(0, amount.start() - 60) : amount.start()]
    return bool(_TOTAL_BEFORE.search(before) or _TOTAL_BEHIND.match(passage, amount.end()))


def _number(amount: re.Match[str]) -> float:
    return float(re.sub(r"[^\d.]", "", amount[0]))
