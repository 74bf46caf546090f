"""Calls that waited until code settled them while the run went on, in messages that were saved.

Pydantic AI tells the model of the calls of one answer in their order, and behind those of the ones that waited: first
the approved and the denied ones, then those that were answered from outside. Its recorder says which calls waited; of
saved messages this order is all there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import MESSAGES, OPENAI_ITEMS, SESSION_FILE, Awaited, Fixture, ModelCall, Run, Step, ToolCall

_SAVED = (MESSAGES, OPENAI_ITEMS, SESSION_FILE)
_Pair = tuple[Step, ToolCall]
_Told = tuple[int, int]
"""The step of a call that a tool answered or somebody denied, and its place among the calls of the model's answer."""


def with_awaited(
    run: Run, answers: Sequence[tuple[Step, ModelCall, History | None]], found: list[Fixture]
) -> list[Fixture]:
    """`answers` are those of the model, each with the history that comes after it."""
    if run.source_format not in _SAVED:
        return found
    given, beside = {each.step for each in found}, _calls_by_answer(run)
    waited: dict[int, Awaited] = {}
    for step, call, after in answers:
        calls = [pair for pair in beside[step.index] if pair[0].index in given or pair[1].outcome == "denied"]
        if len(calls) > 1:
            waited |= _waited(list(_told(call, after, calls)), denied={each.index for each, _ in calls} - given)
    return [replace(each, awaited=waited.get(each.step)) for each in found]


def are_told_in_saved_order(run: Run, found: Iterable[Fixture]) -> bool:
    """Whether a replay tells the model of calls in the order of the saved messages, or in the one a recorder tells."""
    is_saved = run.source_format in _SAVED and any(each.awaited is not None for each in found)
    return is_saved or any(told_as(step) is not None for step, _ in run.tool_calls)


def told_as(step: Step) -> int | None:
    """The place at which the model was told of a call, where a recorder saw another order than the calls have."""
    place = step.extra.get("told_as")
    return place if isinstance(place, int) else None


def _calls_by_answer(run: Run) -> Mapping[int, list[_Pair]]:
    found: defaultdict[int, list[_Pair]] = defaultdict(list)
    for step, call in run.tool_calls:
        if step.parent is not None:
            found[step.parent].append((step, call))
    return found


def _waited(told: list[_Told], denied: set[int]) -> dict[int, Awaited]:
    """What each call waited for, by its step. Some of those before may have waited as well, which makes no difference
    to what the model was told; nor does it for what the last ones waited."""
    breaks = [number for number, ((_, one), (_, after)) in enumerate(pairwise(told), start=1) if after < one]
    first = min([*breaks, *(number for number, (step, _) in enumerate(told) if step in denied)], default=len(told))
    from_outside = max((number for number in breaks if number > first), default=len(told))
    return {
        step: "approval" if number < from_outside else "answer"
        for number, (step, _) in enumerate(told)
        if number >= first and step not in denied
    }


def _told(call: ModelCall, after: History | None, calls: list[_Pair]) -> Iterator[_Told]:
    """In the order of the message behind the answer, each once: what stands there again is no order. Calls that share
    an id cannot be told apart."""
    asked = [part.get("tool_call_id") for part in _parts(call.response.value if call.response else None, "tool-call")]
    steps = {each.call_id: step.index for step, each in calls if asked.count(each.call_id) == 1}
    for part in _parts(after.message.value if after else None, "tool-return", "retry-prompt"):
        if (call_id := part.get("tool_call_id")) in steps:
            yield steps.pop(call_id), asked.index(call_id)


def _parts(message: JsonValue, *kinds: str) -> Iterator[JsonObject]:
    parts = message.get("parts") if isinstance(message, dict) else None
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and part.get("part_kind") in kinds:
            yield part
