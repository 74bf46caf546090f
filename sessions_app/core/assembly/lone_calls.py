"""Calls of a model whose trace holds nothing else, as instrumentations of a client alone send them.

A loop over such a client leaves a trace for each call. What a call goes on from is found by what its request repeats:
all that went into the call before, and its answer, which asked for the tools whose results the request brings. Where
an agent's framework is instrumented as well, its trace tells of the same call, under the provider's id of the answer.
A call that more than one other could belong to stays by itself: a wrong run is worse than a run in pieces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessions_app.core.assembly.conversation import Turn, turns_of, without_system
from sessions_app.core.assembly.names import name
from sessions_app.core.assembly.requests import canonical
from sessions_app.core.assembly.tree import Node, forest, join_twins, walk
from sessions_app.core.conventions.reading_order import read_span
from sessions_app.core.payload import JsonValue, canonical_json
from sessions_app.core.spans.attributes import as_text
from sessions_app.core.spans.reading import CallPart, OtherPart, Part, Reading, ResultPart, TextPart
from sessions_app.core.spans.span import Span

_MOST = 20
"""Spans of a trace that may be one: retries and HTTP inside."""
_END_OF_TIME = 1 << 63


@dataclass(frozen=True, kw_only=True, slots=True)
class LoneCall:
    """Keys are None where the spans do not say what they are made of."""

    trace_id: str
    continues: bytes | None
    """Of the conversation before the results that its request brings."""
    leaves: bytes | None
    """Of the conversation with its answer, where that asks for tools."""
    response: bytes | None
    """Of the provider's id of the answer, 8 bytes."""
    scope: str
    """The instrumentation that told of it."""
    is_answered: bool
    began_ns: int
    ended_ns: int

    def overlaps(self, other: LoneCall) -> bool:
        return self.began_ns <= other.ended_ns and other.began_ns <= self.ended_ns


def lone_call(spans: Sequence[Span]) -> LoneCall | None:
    """None for a trace that holds more, and for one that is not whole."""
    roots = forest(spans) if _may_be_one(spans) else []
    join_twins(roots)
    if len(roots) != 1 or any(node.reading.kind not in (None, "chain") for node in walk(roots[0].children)):
        return None
    span, reading = roots[0].span, roots[0].reading
    if reading.kind != "model" or span.start_ns is None or not span.start_ns <= (span.end_ns or 0) < _END_OF_TIME:
        return None
    continues, leaves = _ends(roots[0])
    return LoneCall(
        trace_id=span.trace_id,
        continues=continues,
        leaves=leaves,
        response=response_key(reading.response_id),
        scope=name(span.scope.name) or "",
        is_answered=reading.answer is not None or reading.error is None,
        began_ns=span.start_ns,
        ended_ns=span.end_ns or 0,
    )


def _may_be_one(spans: Sequence[Span]) -> bool:
    tops = [span for span in spans if span.parent_id is None]
    return len(spans) <= _MOST and len(tops) == 1 and read_span(tops[0]).kind == "model"


def response_key(response_id: JsonValue) -> bytes | None:
    return _digest(response_id)[:8] if isinstance(response_id, str) and response_id else None


def _service(span: Span) -> str | None:
    return as_text(span.resource.get("service.name"))


# --- keys ----------------------------------------------------------------------------------------


def _ends(node: Node) -> tuple[bytes | None, bytes | None]:
    """The keys of what the call continues and of what it leaves."""
    reading = node.reading
    if not reading.messages:
        return None, None
    instructions, said = without_system(reading.messages, reading.instructions)
    turns = turns_of(said)
    start: list[JsonValue] = [_service(node.span), reading.session_id, reading.user_id, reading.tenant_id, instructions]
    return _continued(start, turns), _left(start, turns, reading)


def _continued(start: list[JsonValue], turns: list[Turn]) -> bytes | None:
    """The newest turn brings results, and nothing else, of calls that the turn before asked for."""
    if len(turns) < 2 or not turns[-2].is_answer or turns[-1].is_answer:
        return None
    asked, brought = _call_ids(turns[-2]), [_answered_id(part) for part in turns[-1].parts]
    is_answer = bool(brought) and asked is not None and all(each in asked for each in brought)
    return _digest([*start, *map(_said, turns[:-1])]) if is_answer else None


def _left(start: list[JsonValue], turns: list[Turn], reading: Reading) -> bytes | None:
    if reading.answer is None or turns[-1].is_answer:
        return None
    answer = Turn(is_answer=True, messages=(reading.answer,))
    return _digest([*start, *map(_said, [*turns, answer])]) if _call_ids(answer) else None


def _call_ids(turn: Turn) -> set[str] | None:
    """None where one has no id: nothing tells such calls from those of another conversation."""
    ids = {call.call_id for call in turn.calls()}
    return None if None in ids else {each for each in ids if each is not None}


def _answered_id(part: Part) -> str | None:
    return part.call_id if isinstance(part, ResultPart) else None


def _said(turn: Turn) -> JsonValue:
    """Words beside calls of tools are left out by some conventions, and thoughts by most."""
    parts: Iterable[Part] = turn.calls() or turn.parts
    return [turn.is_answer, [key for part in parts if (key := _part(part)) is not None]]


def _part(part: Part) -> JsonValue:
    match part:
        case TextPart():
            return part.text.strip() or None
        case CallPart():
            return ["call", part.call_id, part.tool_name, canonical(part.arguments).hex()]
        case ResultPart():
            return ["result", part.call_id, canonical(part.content).hex()]
        case OtherPart():
            return [part.kind, canonical(part.value).hex()]
    return None


def _digest(value: JsonValue) -> bytes:
    return hashlib.sha256(canonical_json(value)).digest()[:16]


# --- what belongs together -----------------------------------------------------------------------


def told_first(call: LoneCall, others: Iterable[LoneCall]) -> LoneCall | None:
    """The one of those with the same answer that told of it first; itself where it did.

    None where that is not clear. The ids of answers from a cache come again: they say nothing while several calls of
    one instrumentation have them at once.
    """
    same = [each for each in others if each.response == call.response and each.overlaps(call)]
    is_clear = call.response is not None and len({each.scope for each in same}) == len(same)
    return min(same, key=lambda each: (each.began_ns, each.trace_id)) if is_clear else None


def gone_on_from(call: LoneCall, others: Sequence[LoneCall]) -> LoneCall | None:
    """The only one that leaves what this one continues. Attempts that had no answer may go on from it too."""
    before = [each for each in others if each.leaves == call.continues]
    answered = [each for each in others if each.continues == call.continues and each.is_answered]
    is_clear = call.continues is not None and len(before) == 1 and len(answered) <= 1
    return before[0] if is_clear else None
