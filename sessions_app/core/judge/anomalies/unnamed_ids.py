"""Ids that a tool was called with although nobody had named them, where the question named another one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.reading import SeenMessage, leaves, own_tools, seen_messages, value_of
from sessions_app.core.payload import Payload
from sessions_app.core.run import AgentCall, ModelCall, OtherCall, Retrieval, Run, Step, ToolCall


def acted_on_unnamed(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Another id than the one that the question names, and no tool and no message had told of it."""
    for step, used, asked in unnamed_ids(run):
        message = f"{step.name} acted on {used}, which nobody named; the question names {asked}"
        yield Anomaly(code="unnamed_id", message=message, steps=(step.index,))


_ID = re.compile(r"(?<![\w-])([a-z]+[_-])(\d{2,})(?![\w-])")
_NUMBER = re.compile(r"\d+")
Form = tuple[str, int]
"""What stands before the digits, and how many there are."""


def unnamed_ids(run: Run) -> Iterator[tuple[Step, str, str]]:
    """Steps with the id that they were called with, and the one that was asked for. Of several ids of that form in the
    question, or several that nobody named, they are a row of things to go through; who calls the tool with the one that
    was asked for as well compares the two."""
    asked = _asked(run)
    called = [(step, call, found) for step, call in own_tools(run) if (found := _ids_in(call, asked))]
    others = {each for _, _, found in called for each in found} - set(asked.values())
    if not others:
        return
    unnamed = [(step, call, each) for step, call, each in _before_named(run, called) if each in others]
    forms = Counter(_form(each) for each in {each for _, _, each in unnamed})
    for step, call, each in unnamed:
        wanted = asked[_form(each)]
        compared = any(other.tool_name == call.tool_name and wanted in found for _, other, found in called)
        if forms[_form(each)] == 1 and not compared:
            yield step, each, wanted


Called = list[tuple[Step, ToolCall, set[str]]]


def _asked(run: Run) -> dict[Form, str]:
    """The ids of the question that are the only ones of their form."""
    ids = {found[0] for found in _ID.finditer(_text(run.input))}
    alone = Counter(map(_form, ids))
    return {_form(each): each for each in ids if alone[_form(each)] == 1}


def _form(each: str) -> Form:
    prefix = each.rstrip("0123456789")
    return prefix, len(each) - len(prefix)


def _ids_in(call: ToolCall, asked: dict[Form, str]) -> set[str]:
    said = {item.lower() for _, item in leaves(value_of(call.arguments)) if isinstance(item, str)} if asked else set()
    return {each for each in said if _ID.fullmatch(each) and _form(each) in asked}


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
