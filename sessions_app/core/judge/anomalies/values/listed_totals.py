"""Totals that are not the sum of what is listed beside them: of a call, of what a tool told, or of the answer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TypeGuard

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of, question_of
from sessions_app.core.judge.anomalies.reading.statements import figures_in
from sessions_app.core.judge.anomalies.values.sums import CENT, PLAIN_NUMBER, SUM_KEYS, made_of
from sessions_app.core.judge.reading import (
    as_object,
    has_answer,
    is_number,
    leaves,
    listed_rows,
    main_models,
    objects_in,
    own_tools,
    seen_message,
    text_of,
    value_of,
)
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ModelCall, Run, Step

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


# --- of what a tool told -----------------------------------------------------------------------


def totals_of_tools(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool gave lines and a total that is not theirs, and that was used: by a later call, or in the answer."""
    found = [(step, *own) for step, call in own_tools(run) if (own := _own_total(value_of(call.result)))][:_MOST]
    for step, key, said, total in found if has_answer(run) else ():
        later = (call for each, call in own_tools(run) if each.index > step.index)
        passed_on = any(item == said for call in later for _, item in leaves(value_of(call.arguments)))
        if passed_on or said in figures_in(answer_of(run)):
            message = f"{step.name} returned {key} {said:.12g}, but its lines add up to {total:.12g}"
            yield Anomaly(code="other_total", message=message, steps=(step.index,))


_TOTAL_KEYS = re.compile(
    r"(?:\w+[_ ])?(?:total\w*|sum|summe|gesamt\w*|importe|montant|somme|suma|soma|somma|razem|łącznie|totaal|totalt"
    r"|amount_due|balance_due|合計\w*|总\w*|總\w*|合计\w*)",
    re.IGNORECASE,
)
_PARTLY = re.compile(
    r"sub|net|before|open|due|paid|tax|count|items|rows|results|records|pages|hits|last|max|avg|average"
)


def _own_total(told: JsonValue) -> tuple[str, float, float] | None:
    """Its key, what it says and what the lines add up to; only where nothing else that was told may make the one of the
    other: another number beside the list, lines of several currencies or states, or a part of the lines."""
    record = as_object(told)
    lists = [objects_in(item) for item in record.values() if isinstance(item, list)]
    numbers = {key: float(item) for key, item in record.items() if _is_numeric(item) and not _is_count(item, lists)}
    rows, only = lists[0] if len(lists) == 1 else [], next(iter(numbers.items()), None)
    if len(rows) < 2 or len(numbers) != 1 or only is None or any(isinstance(item, dict) for item in record.values()):
        return None
    (key, said), amounts = only, min(_amounts(rows), key=lambda each: abs(sum(each) - only[1]), default=[])
    is_total = _TOTAL_KEYS.fullmatch(key) and not _PARTLY.search(key.lower()) and not _MORE.intersection(record)
    if not is_total or not amounts or _is_of_a_kind(rows, amounts, said):
        return None
    total = sum(amounts)
    is_near = 2 * abs(said - total) <= abs(total) or min(abs(said - 10 * total), abs(10 * said - total)) <= CENT
    return (key, said, total) if is_near and not _is_with_tax(said, total) else None


def _is_with_tax(said: float, total: float) -> bool:
    """Or with a discount: a whole or half percentage, which 0 is, too."""
    percent = 200 * (said / total - 1) if total else 0.0
    return abs(total * (1 + round(percent) / 200) - said) <= 2 * CENT and abs(percent) <= _MOST_TAX


_MOST_TAX = 60
"""Halves of a percentage."""


_MORE = frozenset({"next", "next_page", "next_cursor", "has_more", "page", "truncated"})


def _is_numeric(item: JsonValue) -> TypeGuard[float | str]:
    return is_number(item) or (isinstance(item, str) and re.fullmatch(r"-?\d{1,12}(?:\.\d+)?", item) is not None)


def _is_count(item: JsonValue, lists: list[list[JsonObject]]) -> bool:
    return any(item == len(rows) for rows in lists)


def _amounts(rows: list[JsonObject]) -> list[list[float]]:
    """For each line what two other numbers of each make, or the only number that each has; of two, one may be a number
    of pieces."""
    keys = [key for key in rows[0] if all(is_number(row.get(key)) for row in rows)]
    columns = {key: [float(row[key]) for row in rows] for key in keys[:_KEYS]}
    pairs = list(combinations(columns, 2))
    made = [(pair, [x * y for x, y in zip(columns[pair[0]], columns[pair[1]], strict=True)]) for pair in pairs]
    if len(keys) < 2:
        return list(columns.values())
    if len(keys) == 2:
        return [*columns.values(), *(column for _, column in made)]
    return [
        column
        for key, column in columns.items()
        if any(key not in pair and _are_same(column, each) for pair, each in made)
    ]


_KEYS = 6


def _are_same(column: list[float], made: list[float]) -> bool:
    return all(abs(x - y) <= 2 * CENT for x, y in zip(column, made, strict=True)) and len(set(made)) > 1


def _is_of_a_kind(rows: list[JsonObject], amounts: list[float], said: float) -> bool:
    """Whether the lines of one kind, as of a state, make it, or they are of several currencies."""
    for key in rows[0]:
        sums: dict[str, float] = defaultdict(float)
        for row, amount in zip(rows, amounts, strict=True):
            sums[str(row.get(key))] += amount
        if len(sums) > 1 and all(map(_CURRENCY.fullmatch, sums)):
            return True
        if len(sums) < len(rows) and any(abs(each - said) <= 2 * CENT for each in sums.values()):
            return True
    return False


_CURRENCY = re.compile(r"[A-Z]{3}|[€$£¥]")


# --- of the answer -----------------------------------------------------------------------------


def totals_of_the_answer(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The answer lists what makes its total, and it does not; or a model wrote down such a sum, and no right one."""
    answer = answer_of(run)
    for step, written, total in list(wrong_sums(run))[:_MOST] if has_answer(run) else ():
        message = f"The model wrote {written}, but that makes {total:.12g}"
        yield Anomaly(code="other_total", message=message, steps=(step.index,))
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


_NUMBER = r"[€$£]?\s?(?:\d{1,3}(?:[ .,'\u2019\u00a0\u202f]\d{3})+|\d+)(?:[.,]\d{1,2})?(?![.,]?\d)"
_TERM = rf"(?>{_NUMBER})(?:\s?(?:[€$£]|EUR|USD|GBP|CHF)(?!\w))?"
_WRITTEN = re.compile(
    rf"(?<![\w.,*/×÷^=(+-])(?<![*/×÷^=(+−-] ){_TERM}(?:\s*+\+\s*+{_TERM}){{1,40}}+\s*+=\s*+{_TERM}(?!\w|\s*[*/×÷^+%−-])"
)


def wrong_sums(run: Run) -> Iterator[tuple[Step, str, float]]:
    """Sums that a model wrote with all their terms, and what these make. Not one that the question or a tool has, nor
    where the right one is written anywhere later."""
    for step, call in main_models(run):
        text = _text_of(call)
        for found in _WRITTEN.finditer(text) if "+" in text and "=" in text else ():
            total = _makes(found[0])
            rest = text[found.end() :]
            if total is not None and not _is_given(run, found[0]) and not _is_mended(run, step, rest, total):
                yield step, found[0].strip(), total


def _makes(written: str) -> float | None:
    """None where it is right, whichever mark stands before the cents."""
    sums: list[float] = []
    for mark in ".,":
        terms, said = written.split("=")
        numbers = [_read(each, mark) for each in (*terms.split("+"), said)]
        if any(number is None for number in numbers):
            continue
        *parts, whole = [number for number in numbers if number is not None]
        if abs(sum(parts) - whole) <= CENT * len(numbers) or (whole == 100 and abs(sum(parts) - whole) <= 1):
            return None
        sums.append(sum(parts))
    return sums[0] if sums else None


def _read(term: str, mark: str) -> float | None:
    spelled = re.sub(r"[^\d.,]", "", term)
    whole, _, part = spelled.partition(mark)
    is_number = re.fullmatch(r"\d+(?:[.,]\d{3})*", whole) is not None and re.fullmatch(r"\d{0,2}", part) is not None
    return float(f"{re.sub('[.,]', '', whole)}.{part or 0}") if is_number else None


def _text_of(call: ModelCall) -> str:
    parts = seen_message(call.response, step=0).parts_of("text") if call.response else []
    return "\n".join(str(part.get("content")) for part in parts)


def _is_given(run: Run, written: str) -> bool:
    given = (call.result.as_text() for _, call in own_tools(run) if call.result is not None)
    return any(written.strip() in text for text in (question_of(run), *given))


def _is_mended(run: Run, step: Step, rest: str, total: float) -> bool:
    later = (_text_of(call) for each, call in main_models(run) if each.index > step.index)
    asked = (call.arguments.as_text() for each, call in own_tools(run) if each.index > step.index and call.arguments)
    return any(round(total, 2) in {round(each, 2) for each in figures_in(text)} for text in (rest, *later, *asked))
