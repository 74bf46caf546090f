"""One sign that is looked for in a record, and what several of them read it with."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from sessions_app.core.judge.reading import count, join_words, leaves, own_tools, status_code, text_of, value_of
from sessions_app.core.payload import Payload
from sessions_app.core.run import Retrieval, Run, Step, answered

Sight = Literal["seen", "not_seen", "not_captured"]

RATE_STATUSES = frozenset({429, 503, 529})
"""Too many requests, not available, overloaded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """A sign, and whether the recording holds it. What was not captured is never "not seen"."""

    title: str
    sight: Sight
    words: str
    steps: tuple[int, ...] = ()
    """Those that show it, or that lack what it is looked for in; empty where it is about the whole run."""


def statuses(run: Run, title: str, wanted: Collection[int]) -> Check:
    """Whether calls to the outside were answered with one of these HTTP statuses."""
    calls = outward(run)
    codes = {step.index: code for step in calls if (code := status_code(step)) is not None}
    found = {index: code for index, code in codes.items() if code in wanted}
    if found:
        said = join_words([f"HTTP {code}" for code in sorted(set(found.values()))])
        return Check(title=title, sight="seen", words=f"{said}.", steps=tuple(found))
    if not calls:
        return Check(title=title, sight="not_captured", words="No external call was recorded.")
    if len(codes) < len(calls):
        words = f"A status was recorded on {len(codes)} of {count(len(calls), 'call')}."
        return Check(title=title, sight="not_captured", words=words)
    return Check(title=title, sight="not_seen", words=f"None on {count(len(calls), 'call')}.")


def outward(run: Run) -> list[Step]:
    """Steps that ask something outside the agent's process, or may."""
    tools = {step.index for step, _ in own_tools(run)}
    return [step for step in run.steps if step.kind in ("model", "retrieval") or step.index in tools]


def has_answer(step: Step) -> bool:
    if isinstance(step.call, Retrieval):
        return step.call.chunks is not None
    return answered(step) is not None


def searched(payload: Payload | None) -> str:
    """The text to look in, with the keys and values of JSON apart; of bytes that are no text, nothing."""
    value = value_of(payload)
    if isinstance(value, dict | list) or (payload is not None and payload.is_json):
        return "\n".join(f"{key or ''} {item}" for key, item in leaves(value))
    return text_of(payload) or ""


def indexes(steps: Iterable[Step]) -> tuple[int, ...]:
    return tuple(step.index for step in steps)
