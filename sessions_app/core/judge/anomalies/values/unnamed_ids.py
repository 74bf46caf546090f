"""Ids that a tool was called with although nobody had named them, or although the question had named another one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.reading import (
    SeenMessage,
    has_answer,
    leaves,
    own_tools,
    seen_messages,
    value_of,
)
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import AgentCall, ModelCall, OtherCall, Retrieval, Run, Step, ToolCall


def acted_on_unnamed(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Another id than the one that the question names, or than the one that a tool gave and whose digits are the same,
    and no tool and no message had told of it."""
    for step, used, asked in unnamed_ids(run):
        message = f"{step.name} acted on {_spelled(used, step)}, which nobody named; the question names {asked}"
        yield Anomaly(code="unnamed_id", message=message, steps=(step.index,))
    for step, used, given in swapped_ids(run):
        message = f"{step.name} acted on {used}, which nobody named; an earlier answer gives {given}"
        yield Anomaly(code="unnamed_id", message=message, steps=(step.index,))


def _spelled(each: str, step: Step) -> str:
    """As the call has it."""
    values = leaves(value_of(step.call.arguments)) if isinstance(step.call, ToolCall) else ()
    return next((item for _, item in values if isinstance(item, str) and item.lower() == each), each)


def acted_on_another(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The question names one, earlier calls were about it, and so is the answer; this call was not."""
    found = _others_acted_on(run) if has_answer(run) else []
    often = Counter(_form(used.lower()) for used in {used for _, used, _ in found})
    for step, used, wanted in found:
        if often[_form(used.lower())] == 1 and _speaks_of_other(run, used, wanted):
            message = f"{step.name} acted on {used}; the question and the answer name {wanted}"
            yield Anomaly(code="other_id", message=message, steps=(step.index,))


def _others_acted_on(run: Run) -> list[tuple[Step, str, str]]:
    """Calls that do something, for the first time with another id than the one that calls before had in its place."""
    asked, used = _asked(run), set[tuple[str | None, str]]()
    found: list[tuple[Step, str, str]] = []
    for step, call in own_tools(run) if asked else ():
        for key, item in leaves(value_of(call.arguments)):
            wanted, each = _wanted(item, asked), str(item).lower()
            if wanted and (key, wanted.lower()) in used and (key, each) not in used and not looks_up(step, call):
                found.append((step, str(item), wanted))
            used.add((key, each))
    return found


def _wanted(item: JsonValue, asked: dict[Form, str]) -> str | None:
    """The one of the question, where this is another of its form."""
    each = item.lower() if isinstance(item, str) else ""
    wanted = asked.get(_form(each)) if _ID.fullmatch(each) else None
    return wanted if wanted is not None and wanted.lower() != each else None


def _speaks_of_other(run: Run, used: str, wanted: str) -> bool:
    """The answer has nothing of the record that a tool gave of the one, and something of the other; who is named in the
    record of the other, as a manager is, belongs to it."""
    answer = answer_of(run).lower()
    ours, others = _told_of(run, wanted), _told_of(run, used)
    is_known, names = len(others) > 1 and wanted.lower() not in others, [*(others - ours), used.lower()]
    return is_known and any(word in answer for word in ours - others) and not any(word in answer for word in names)


def _told_of(run: Run, each: str) -> set[str]:
    """The id and the other texts of the records that hold it."""
    found = {each.lower()}
    waiting = [value_of(call.result) for _, call in own_tools(run)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        if isinstance(value, dict) and each in value.values():
            found |= {item.lower() for item in value.values() if isinstance(item, str) and len(item) > _SHORT}
    return found


_SHORT = 3


_ID = re.compile(r"(?<![\w-])([a-z]+[_-])(\d{2,})(?![\w-])")
_ANY_ID = re.compile(_ID.pattern, re.IGNORECASE)
_BARE = re.compile(r"(?<![\w.,:/+-])(?!20\d{6}(?!\d)|\d*000(?!\d))\d{5,12}(?![\w.,:/-]*\d)(?![a-z])", re.ASCII)
"""A number that is no day and no round one, such as that of an order."""
_NUMBER = re.compile(r"\d+")
Form = tuple[str, int]
"""What stands before the digits, and how many there are."""


def unnamed_ids(run: Run) -> Iterator[tuple[Step, str, str]]:
    """Steps with the id that they were called with, and the one that was asked for. Of several ids of that form in the
    question, or several that nobody named, they are a row of things to go through; who calls the tool with the one that
    was asked for as well compares the two."""
    asked = _asked(run)
    called = [(step, call, found) for step, call in own_tools(run) if (found := _ids_in(call, asked))]
    others = {each for _, _, found in called for each in found} - {each.lower() for each in asked.values()}
    if not others:
        return
    unnamed = [(step, call, each) for step, call, each in _before_named(run, called) if each in others]
    forms = Counter(_form(each) for each in {each for _, _, each in unnamed})
    for step, call, each in unnamed:
        wanted = asked[_form(each)]
        compared = any(other.tool_name == call.tool_name and wanted.lower() in found for _, other, found in called)
        if forms[_form(each)] == 1 and not compared:
            yield step, each, wanted


def swapped_ids(run: Run) -> Iterator[tuple[Step, str, str]]:
    """Steps with an id that has the digits of the one that another tool gave under the same name, in another order.
    Where the question names one of that form, that one counts; several are a row of things to go through."""
    asked = _asked(run)
    given: dict[Digits, dict[str, str]] = {}
    found: list[tuple[Step, ToolCall, str, str]] = []
    for step, call in own_tools(run):
        for item, of in _ids_under(call.arguments):
            others = given.get(of, {})
            if len(others) == 1 and item not in others and step.name not in others.values():
                found.append((step, call, item, next(iter(others))))
        for item, of in _ids_under(call.result):
            given.setdefault(of, {})[item] = step.name
    often = Counter(_form(used.lower()) for used in {used for _, _, used, _ in found})
    alone = [each for each in found if often[form := _form(each[2].lower())] == 1 and form not in asked]
    called = [(step, call, {used.lower()}) for step, call, used, _ in alone]
    unnamed = {step.index for step, _, _ in _before_named(run, called)} if alone else set()
    yield from ((step, used, other) for step, _, used, other in alone if step.index in unnamed)


Digits = tuple[str | None, str, str]


def _ids_under(payload: Payload | None) -> Iterator[tuple[str, Digits]]:
    """Each id with its name, what is before its digits, and these in order."""
    for key, item in leaves(value_of(payload)):
        each = item.lower() if isinstance(item, str) else ""
        if isinstance(item, str) and _ID.fullmatch(each):
            yield item, (key, _form(each)[0], "".join(sorted(_digits(each))))


Called = list[tuple[Step, ToolCall, set[str]]]


def _asked(run: Run) -> dict[Form, str]:
    """The ids of the question that are the only ones of their form."""
    asked = "" if run.input is None else run.input.as_text()
    ids = {found[0].lower(): found[0] for each in (_ANY_ID, _BARE) for found in each.finditer(asked)}
    alone = Counter(map(_form, ids))
    return {_form(each): spelled for each, spelled in ids.items() if alone[_form(each)] == 1}


def _form(each: str) -> Form:
    prefix = each.rstrip("0123456789")
    return prefix, len(each) - len(prefix)


def _ids_in(call: ToolCall, asked: dict[Form, str]) -> set[str]:
    said = {str(item).lower() for _, item in leaves(value_of(call.arguments)) if _is_name(item)} if asked else set()
    known = {each for each in said if _form(each) in asked}
    return {each for each in known if _ID.fullmatch(each) or _is_like(each, asked[_form(each)])}


def _is_name(item: JsonValue) -> bool:
    return isinstance(item, str) or (isinstance(item, int) and not isinstance(item, bool))


def _is_like(number: str, asked: str) -> bool:
    """A bare number may be an amount or anything: only one with the same digits in another order."""
    return number.isdecimal() and sorted(number) == sorted(asked)


def _before_named(run: Run, called: Called) -> Iterator[tuple[Step, ToolCall, str]]:
    """Calls with an id of which no text before them has even the digits; none behind an answer that was not recorded,
    which may have named it."""
    known = set[str]()
    ids = {step.index: (call, found) for step, call, found in called}
    texts = _texts_by_step(run)
    known.update(*(_NUMBER.findall(text) for text in texts.get(0, ())))
    for step in run.steps:
        known.update(*(_NUMBER.findall(text) for text in texts.get(step.index, ())))
        call, found = ids.get(step.index, (None, set[str]()))
        yield from ((step, call, each) for each in sorted(found) if call and not known & {_digits(each)})
        if _is_unknown(step):
            return
        known.update(*(_NUMBER.findall(_text(payload)) for payload in _told(step)))


def _digits(each: str) -> str:
    return each[_form(each)[1] * -1 :]


def _texts_by_step(run: Run) -> dict[int, list[str]]:
    """What the conversation held before each step; what the model asks for in this run names nothing by itself."""
    texts = {0: [_text(run.input), run.instructions or "", _text(run.initial_state)]}
    for seen in seen_messages(run):
        if seen.step == 0 or seen.message.get("kind") != "response":
            texts.setdefault(seen.step, []).append(_said(seen))
    return texts


def _said(seen: SeenMessage) -> str:
    """Without the digits of times and of ids of calls, which name nothing."""
    parts = [part.get("content") for part in seen.parts]
    return str([parts or seen.message, seen.message.get("instructions")]).lower()


def _is_unknown(step: Step) -> bool:
    return isinstance(step.call, ToolCall) and step.call.result is None and step.error is None


def _told(step: Step) -> list[Payload | None]:
    match step.call:
        case ToolCall(result=result) | AgentCall(result=result) | OtherCall(result=result):
            return [result]
        case Retrieval(chunks=chunks):
            return [chunk.content for chunk in chunks or ()]
        case ModelCall():
            return []


def _text(payload: Payload | None) -> str:
    return "" if payload is None else payload.as_text().lower()
