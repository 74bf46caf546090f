"""Calls that an earlier run ended with, for somebody to decide, and that a run makes before it asks its model.

Without the agent's own word for it that there was an earlier run, the answer that asks for them was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sessions_app.core.assembly.tree import Node
from sessions_app.core.spans.reading import CallPart, ChatMessage, Part, ResultPart


@dataclass(frozen=True, kw_only=True, slots=True)
class LastAnswer:
    """That of an earlier run, from which this one goes on."""

    left_open: tuple[CallPart, ...] = ()
    answered: frozenset[str] = frozenset()
    """Ids of the calls beside them that the earlier run answered itself."""


def last_answer(nodes: Sequence[Node]) -> LastAnswer:
    """`nodes` are those of a trace in order of time."""
    agent = next((node.reading for node in nodes if node.kind == "agent"), None)
    first = next((node.reading for node in nodes if node.kind == "model"), None)
    earlier = (agent.earlier if agent is not None else None) or ()
    before = _up_to_answer((first.messages if first is not None else None) or ())
    known = _up_to_answer(earlier)
    if not before or _answers_in(before) > _answers_in(known):
        return LastAnswer()
    behind = earlier[len(known) :] if _answers_in(before) == _answers_in(known) else ()
    answered = frozenset(part.call_id for part in _parts(behind) if isinstance(part, ResultPart) and part.call_id)
    calls = (part for part in before[-1].parts if isinstance(part, CallPart) and not part.is_builtin)
    return LastAnswer(
        left_open=tuple(part for part in calls if part.call_id and part.call_id not in answered), answered=answered
    )


def _up_to_answer(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    answers = [at for at, message in enumerate(messages, start=1) if message.role == "assistant"]
    return messages[: answers[-1]] if answers else ()


def _answers_in(messages: Iterable[ChatMessage]) -> int:
    return sum(message.role == "assistant" for message in messages)


def _parts(messages: Iterable[ChatMessage]) -> Iterator[Part]:
    return (part for message in messages for part in message.parts)
