"""Calls that found nothing: made again, or spoken of as if something had been found."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice, pairwise

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.answer_words import ANSWER, SAYS_NOTHING, is_named, owns_up
from sessions_app.core.judge.reading import (
    argument_key,
    first_requests,
    has_answer,
    join_words,
    leaves,
    own_tools,
    text_of,
    value_of,
)
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ModelCall, Run, Step, ToolCall

COUNT_KEYS = frozenset({"count", "total", "total_count", "hits", "matches"})


def empty_result_retried(run: Run, rules: Rules) -> Iterator[Anomaly]:
    same: dict[tuple[str, bytes], list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        same[call.tool_name, argument_key(call)].append((step, call))
    for (name, _), calls in same.items():
        retried = [pair for pair in pairwise(calls) if is_empty_answer(pair[0][1])]
        if retried:
            steps = dict.fromkeys(step.index for pair in retried for step, _ in pair)
            message = f"Empty result retried: {name}"
            yield Anomaly(code="empty_result_retried", message=message, steps=tuple(steps))


def is_empty_answer(call: ToolCall) -> bool:
    return call.result is not None and is_empty(value_of(call.result))


def is_empty(value: JsonValue) -> bool:
    """Nothing was found: null, no text, no items, or empty lists and counts of 0."""
    if isinstance(value, str):
        return value.strip() in ("", "null")
    if not isinstance(value, dict):
        return value is None or value == []
    lists = [item for item in value.values() if isinstance(item, list | dict)]
    numbers = [item for item in value.values() if isinstance(item, int | float)]
    has_place = bool(lists) or not value or not COUNT_KEYS.isdisjoint(value)
    return has_place and not any(lists) and not any(n for n in numbers if n is not True)


def empty_results_gone_past(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Nothing was found, and the answer speaks of it as if something had been."""
    if not has_answer(run):
        return
    empty = {step.index for step, call in own_tools(run) if is_empty_answer(call)}
    for step, name in named_though_not_found(run, empty):
        message = f"{step.name} found nothing, and the answer speaks of {name} without saying so"
        yield Anomaly(code="empty_result_unsaid", message=message, steps=(step.index,))


_NAMED = 50
"""Steps that speak of what was not found; each is looked for in all that tools told."""


def named_though_not_found(run: Run, is_empty: set[int]) -> Iterator[tuple[Step, str]]:
    """Steps whose call found nothing, with the number or id that it asked for and the answer speaks of. What another
    tool told of it, or an answer that says that there is nothing, is in order; so is a tool that answers nobody."""
    answer = (text_of(run.output) or "")[:ANSWER]
    if SAYS_NOTHING.search(answer.lower()):
        return
    listings = ((step, call) for step, call in own_tools(run) if step.index in is_empty and _is_listing(call))
    found = ((step, name) for step, call in listings if (name := _name_in(answer, call)) is not None)
    asked = list(islice(found, _NAMED))
    named = {name for _, name in asked}
    told = [call.result.as_text() for _, call in own_tools(run) if call.result is not None] if named else []
    untold = {name for name in named if not any(name in text for text in told)}
    yield from ((step, name) for step, name in asked if name in untold)


def _is_listing(call: ToolCall) -> bool:
    return isinstance(value_of(call.result), list | dict)


def _name_in(answer: str, call: ToolCall) -> str | None:
    words = {str(item) for _, item in leaves(value_of(call.arguments)) if re.search(r"\d{2}", str(item))}
    return next((word for word in sorted(words) if is_named(word, answer)), None)


def answers_without_a_source(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A note: what the answer says may stand in the instructions, or be common knowledge."""
    if not has_answer(run) or owns_up(run.output) or _has_other_source(run):
        return
    searches = [step for step, call in own_tools(run) if is_search(call) and is_empty_answer(call)]
    if searches and affirms(run):
        names = join_words(list(dict.fromkeys(step.name for step in searches)))
        message = f"{names} found nothing, and the answer has no other source"
        steps = tuple(step.index for step in searches)
        yield Anomaly(code="no_source", message=message, steps=steps, level="info")


def _has_other_source(run: Run) -> bool:
    """An earlier turn, another step that may have brought something, or an answer of a tool that is not empty or was
    not recorded."""
    others = any(not isinstance(step.call, ModelCall | ToolCall) for step in run.steps)
    earlier = run.prior is not None or any(seen.message.get("kind") == "response" for seen in first_requests(run))
    return others or earlier or not all(is_empty_answer(call) for _, call in own_tools(run))


_SEARCHES = re.compile(r"(?:^|_)(?:search|find|lookup|retrieve|query)|look_up|Search|Find|Lookup|Retrieve|Query")


def is_search(call: ToolCall) -> bool:
    return _is_listing(call) and _SEARCHES.search(call.tool_name) is not None


def affirms(run: Run) -> bool:
    """A statement with something in it that could be wrong: no denial, no question, no short word."""
    answer = (text_of(run.output) or "")[:ANSWER]
    is_statement = len(answer.split()) > 3 and "?" not in answer
    return is_statement and not SAYS_NOTHING.search(answer.lower())
