"""Recorded HTTP put onto the tool steps of a run that it belongs to.

Nobody says which call an exchange is of. Three things can tell: the answer of the tool is in the body that came, the
arguments are in what was sent, and the exchange was recorded while the call ran. An exchange goes to the call for which
most of them hold, in the recorded order where several are alike; one for which none holds stays outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import unquote_plus

from sessions_app.core.importers.interaction import Interaction
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import HttpExchange, Run, Step, ToolCall

_SHORTEST = 3
"""Characters of a value that say something when they are found in a text."""
_RESULT, _ARGUMENTS, _TIME = 4, 2, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Attached:
    """The run with exchanges on its steps, and what became of each exchange."""

    run: Run
    steps: tuple[int | None, ...]
    """For each exchange the index of its step; None for one that fits no call."""


def attach(run: Run, interactions: Sequence[Interaction]) -> Attached:
    free = {step.index: step for step, _ in run.tool_calls if step.http is None}
    taken: dict[int, Interaction] = {}
    places: list[int | None] = []
    for interaction in interactions:
        place = _best(interaction, [step for index, step in free.items() if index not in taken])
        places.append(place)
        if place is not None:
            taken[place] = interaction
    steps = tuple(_with_exchange(step, taken.get(step.index)) for step in run.steps)
    return Attached(run=replace(run, steps=steps), steps=tuple(places))


def _with_exchange(step: Step, interaction: Interaction | None) -> Step:
    return step if interaction is None else replace(step, http=interaction.attachment)


def _best(interaction: Interaction, steps: list[Step]) -> int | None:
    points = [(_points(interaction, step), -step.index) for step in steps]
    most, index = max(points, default=(0, 0))
    return -index if most else None


def _points(interaction: Interaction, step: Step) -> int:
    call, http = step.call, interaction.http
    assert isinstance(call, ToolCall)
    return (
        _RESULT * _tells_result(call.result, http.response_body)
        + _ARGUMENTS * _holds_arguments(call.arguments, http)
        + _TIME * _was_meanwhile(interaction.recorded_at, step)
    )


def _tells_result(result: Payload | None, body: Payload | None) -> bool:
    """The tool gave the body itself, or every value that it gave stands in the body."""
    if result is None or body is None:
        return False
    if result.content == body.content or result.parsed == body.parsed:
        return True
    said = [text for text in _texts(result.parsed) if len(text) >= _SHORTEST]
    held = set(_texts(body.parsed))
    return bool(said) and all(text in held for text in said)


def _holds_arguments(arguments: Payload | None, http: HttpExchange) -> bool:
    said = [text for text in _texts(arguments.parsed if arguments else None) if text]
    sent = f"{unquote_plus(http.url or '')} {http.request_body.as_text() if http.request_body else ''}"
    return bool(said) and all(text in sent for text in said)


def _was_meanwhile(moment: datetime | None, step: Step) -> bool:
    if moment is None or step.started_at is None or step.ended_at is None:
        return False
    return step.started_at <= moment <= step.ended_at


def _texts(value: JsonValue) -> Iterator[str]:
    """All texts and numbers in it, as texts."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            stack += item.values() if isinstance(item, dict) else item
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            yield str(item)
