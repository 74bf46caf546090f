"""What hooks made of a request to the model: a recording holds the messages of the loop, and hooks may send others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from operator import is_
from typing import Any

from pydantic_ai.messages import repair_messages

_CALLS = ("tool-call", "tool-return")
_WORDS = ("user-prompt", "text", *_CALLS)
_PLAIN = (*_WORDS, "thinking")
"""Of other parts the library makes prompts itself, which nothing tells apart from those of a hook."""


def sent_otherwise(sent: Sequence[Any], held: Sequence[Any]) -> Iterator[str]:
    """`words_added` where words were sent that the loop does not hold, `words_left_out` where some that it holds were
    not sent, or others in their place."""
    if len(sent) == len(held) and all(map(is_, sent, held)):
        return
    own = repair_messages(held)
    if _has_words_beside(sent, own):
        yield "words_added"
    if _missing(_parts(own), _parts(sent)):
        yield "words_left_out"


def requests_at_the_end(messages: Sequence[Any]) -> list[Any]:
    """What came after the last answer."""
    end = len(messages)
    while end and messages[end - 1].kind == "request":
        end -= 1
    return list(messages[end:])


def _has_words_beside(sent: Sequence[Any], held: Sequence[Any]) -> bool:
    """Another answer to a call that the loop holds is left out, not added."""
    own = list(dropwhile(lambda part: part.part_kind == "system-prompt", _parts(held)))
    if not _are_plain(own):
        sent, own = sent[-1:], _parts(requests_at_the_end(held))
    ids = {part.tool_call_id for part in own if part.part_kind in _CALLS}
    new = [part for part in _missing(_parts(sent), own) if getattr(part, "tool_call_id", None) not in ids]
    return _are_plain(own) and bool(new)


def _missing(parts: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Those that hold words and say what none of these says. Most are the same objects, which is quick to see."""
    there = set(map(id, others))
    strange = [part for part in parts if part.part_kind in _WORDS and id(part) not in there]
    said = [_said(other) for other in others] if strange else []
    return [part for part in strange if _said(part) not in said]


def _said(part: Any) -> tuple[Any, ...]:
    return tuple(getattr(part, name, None) for name in ("part_kind", "tool_call_id", "content", "args"))


def _parts(messages: Sequence[Any]) -> list[Any]:
    return [part for message in messages for part in message.parts]


def _are_plain(parts: Sequence[Any]) -> bool:
    return all(part.part_kind in _PLAIN for part in parts)
