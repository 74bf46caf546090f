"""What a framework would not send as it stands in an edited history.

Measured of Pydantic AI, which repairs such histories without a word: a fork that says nothing about it would show
another conversation than the one that the model saw.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sessions_app.core.payload import JsonObject, JsonValue

MAX_SENTENCES = 50
_MAX_NAME = 80
Found = tuple[int, str]
"""Index of the message, and what becomes of it."""


def lint_history(messages: Sequence[JsonObject]) -> list[str]:
    """Sentences about messages of Pydantic AI, counted from 0 as in a `message` change; empty for a clean history.

    The history is read as one from which a run goes on without a new prompt.
    """
    found = [each for check in _CHECKS for each in check(messages)]
    sentences = [f"Message {index} {words}" for index, words in sorted(found, key=lambda each: each[0])]
    more = len(sentences) - MAX_SENTENCES
    return sentences if more <= 0 else [*sentences[:MAX_SENTENCES], f"{more:,} more are not listed."]


# --- calls and their answers -------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class _Calls:
    """Which calls wait for an answer while the messages are walked through."""

    asked_at: dict[str, int] = field(default_factory=dict)
    """Newest message that asked for a call of this id."""
    open: dict[str, deque[Found]] = field(default_factory=dict)
    """Message and tool of those that were not answered yet, by id."""

    def ask(self, index: int, call_id: str, name: str) -> Iterator[Found]:
        if call_id in self.asked_at:
            yield index, f"uses the call id {_name(call_id)} of message {self.asked_at[call_id]} again."
        if self.asked_at.get(call_id, index) != index:
            yield from _interrupted(self.open.pop(call_id, ()))
        self.asked_at[call_id] = index
        self.open.setdefault(call_id, deque()).append((index, name))

    def answer(self, index: int, call_id: str) -> Iterator[Found]:
        if call_id not in self.asked_at:
            yield index, f"answers a call {_name(call_id)} that no message before it asks for; the answer is left out."
        elif not self.open.get(call_id):
            yield index, f"answers the call {_name(call_id)} a second time."
        else:
            self.open[call_id].popleft()

    def left(self, last: int) -> Iterator[Found]:
        """Those of the last message are made when the run goes on."""
        for calls in self.open.values():
            yield from _interrupted(call for call in calls if call[0] != last)


def _interrupted(calls: Iterable[Found]) -> Iterator[Found]:
    for index, name in calls:
        yield index, f"calls {name}, which is not answered; the model is told that the call was interrupted."


def _calls(messages: Sequence[JsonObject]) -> Iterator[Found]:
    calls = _Calls()
    for index, message in enumerate(messages):
        for part in _parts(message):
            call_id = str(part.get("tool_call_id"))
            if _is_call(part) and _is_response(message):
                yield from calls.ask(index, call_id, _name(part.get("tool_name")))
            elif _is_answer(part) and _is_request(message):
                yield from calls.answer(index, call_id)
    yield from calls.left(len(messages) - 1)


def _prompts(messages: Sequence[JsonObject]) -> Iterator[Found]:
    """A prompt right after calls of which not one is answered."""
    for (index, before), after in zip(enumerate(messages), messages[1:], strict=False):
        if not (_is_response(before) and _is_request(after) and any(map(_is_call, _parts(before)))):
            continue
        kinds = {part.get("part_kind") for part in _parts(after)}
        if "user-prompt" in kinds and not any(map(_is_answer, _parts(after))):
            yield index + 1, f"asks anew while the calls of message {index} are open."


# --- messages ----------------------------------------------------------------------------------


def _neighbours(messages: Sequence[JsonObject]) -> Iterator[Found]:
    for index, (before, after) in enumerate(pairwise(messages), start=1):
        if _is_response(before) and _is_response(after):
            yield index, f"is a second answer in a row, after message {index - 1}."
        elif _is_request(before) and _is_request(after) and _are_joined(before, after):
            yield index, f"is a second request in a row; it is sent as one with message {index - 1}."


def _are_joined(before: JsonObject, after: JsonObject) -> bool:
    one, other = before.get("instructions"), after.get("instructions")
    return not one or not other or bool(one == other)


def _shapes(messages: Sequence[JsonObject]) -> Iterator[Found]:
    for index, message in enumerate(messages):
        if not (_is_request(message) or _is_response(message)):
            yield index, "is neither a request nor a response."
        elif _is_request(message) and not _parts(message):
            yield index, "is a request without parts; the model is asked nothing."


def _system_prompts(messages: Sequence[JsonObject]) -> Iterator[Found]:
    requests = [index for index, message in enumerate(messages) if _is_request(message)]
    for index in requests[1:]:
        if any(part.get("part_kind") == "system-prompt" for part in _parts(messages[index])):
            yield index, f"holds a system prompt; its place is the first request, message {requests[0]}."


def _instructions(messages: Sequence[JsonObject]) -> Iterator[Found]:
    """One sentence for all of them: agents that tell the time in their instructions have others in each request."""
    told = [(index, message["instructions"]) for index, message in enumerate(messages) if _is_told(message)]
    others = [index for index, instructions in told if instructions != told[-1][1]]
    if others:
        more = f", as have {len(others) - 1:,} more" if len(others) > 1 else ""
        yield others[0], f"has other instructions than message {told[-1][0]}{more}; only the newest are sent."


def _ending(messages: Sequence[JsonObject]) -> Iterator[Found]:
    """A suspended answer is no end: the provider goes on with it."""
    last = messages[-1] if messages else None
    if _is_response(last) and not _is_suspended(last) and not any(map(_is_call, _parts(last))):
        yield len(messages) - 1, "is a final answer; going on from it sends one more, empty request."


_CHECKS = (_shapes, _calls, _prompts, _neighbours, _system_prompts, _instructions, _ending)


# --- reading -----------------------------------------------------------------------------------


def _is_request(message: JsonValue) -> bool:
    return isinstance(message, dict) and message.get("kind") == "request"


def _is_response(message: JsonValue) -> bool:
    return isinstance(message, dict) and message.get("kind") == "response"


def _is_suspended(message: JsonValue) -> bool:
    return isinstance(message, dict) and message.get("state") == "suspended"


def _is_told(message: JsonValue) -> bool:
    return _is_request(message) and bool(message.get("instructions"))


def _parts(message: JsonValue) -> list[JsonObject]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _is_call(part: JsonObject) -> bool:
    return part.get("part_kind") == "tool-call"


def _is_answer(part: JsonObject) -> bool:
    """Older versions tell of a failed call in a part of its own; without a tool it is about the whole answer."""
    kind = part.get("part_kind")
    return kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name") is not None)


def _name(text: JsonValue) -> str:
    return " ".join(str(text)[:_MAX_NAME].split())
