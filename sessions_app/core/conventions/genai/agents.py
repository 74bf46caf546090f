"""Spans around a whole run, or around work that holds others together: what went in, what came out."""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app.core.conventions.genai.events import Told, told_in_list
from sessions_app.core.conventions.genai.messages import answer_of, input_of, texts_of
from sessions_app.core.conventions.genai.requests import count_of
from sessions_app.core.conventions.genai.said import Said, details_of
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.provider_messages import messages_in_state
from sessions_app.core.spans.reading import CallPart, ChatMessage, Part, Reading, ResultPart
from sessions_app.core.spans.span import Span

_Messages = tuple[ChatMessage, ...]


def add_agent_run(reading: Reading, said: Said, told: Told | None, span: Span) -> None:
    """What such a span says; only agents have a conversation of their own."""
    asked = said.take(input_of, "gen_ai.input.messages") or (told.messages if told else None)
    answer = said.take(answer_of, "gen_ai.output.messages") or (told.answer if told else None)
    begun, ended = said.take(_task_input, "gen_ai.task.input"), said.take(_task_output, "gen_ai.task.output")
    reading.earlier = _earlier(said)
    reading.input = _first((_new_prompt(said), _newest_prompt(asked), begun))
    final = said.take(_final, "final_result")
    reading.waiting = _waiting(final)
    reading.output = _first((None if reading.waiting else final, _text(answer), ended))
    if reading.framework == "strands-agents" and isinstance(reading.output, str):
        reading.output = reading.output.removesuffix("\n")  # which Strands puts behind the text of each result
    if reading.kind == "agent":
        reading.has_varying_instructions = said.raw("pydantic_ai.variable_instructions") is True
        reading.conversation = _all_messages(said) or _together(asked, answer)
        reading.summary = answer if _tells_of(answer, CallPart, ResultPart) else None
        reading.initial = asked
        _add_states(reading, messages_in_state(begun), messages_in_state(ended))
    else:
        recorded = (each.get("gen_ai.input.messages") for each in details_of(span))
        more = [message for messages in map(input_of, recorded) for message in messages or ()]
        reading.summary = _all_parts([*(asked or ()), *more, *(told.results if told else ())], answer)


def _add_states(reading: Reading, begun: _Messages | None, ended: _Messages | None) -> None:
    """The words in a graph's states, `{"messages": []}`, where a task began and ended with such states."""
    last = ended[-1] if ended and ended[-1].role == "assistant" else None
    reading.input = _newest_prompt(begun) or reading.input
    reading.output = _text(last) or reading.output
    reading.initial = reading.initial or begun
    reading.conversation = reading.conversation or ended


def _first(values: Iterable[JsonValue]) -> JsonValue:
    return next((value for value in values if value is not None), None)


def _all_messages(said: Said) -> _Messages | None:
    """Pydantic AI's own attributes, the first one of its newer formats."""
    return said.take(input_of, "pydantic_ai.all_messages") or said.take(_listed, "all_messages_events")


def _listed(value: JsonValue) -> _Messages | None:
    told = told_in_list(value)
    return told.messages if told else None


def _new_prompt(said: Said) -> str | None:
    """What the user said first in this run: the conversation may have begun in an earlier one."""
    items = parsed(said.peek("pydantic_ai.all_messages"))
    begin = said.take(count_of, "pydantic_ai.new_message_index") or 0
    if isinstance(items, list):
        return next(iter(_prompts(input_of(items[begin:]))), None)
    return _newest_prompt(_listed(said.peek("all_messages_events")))


def _earlier(said: Said) -> _Messages | None:
    """What was said before this run. Its place is counted before neighbouring requests become one; no run begins with
    an answer."""
    items, begin = parsed(said.peek("pydantic_ai.all_messages")), count_of(said.peek("pydantic_ai.new_message_index"))
    if not isinstance(items, list) or not items or not begin:
        return None
    begin = min(begin, len(items) - 1)
    return input_of(items[: begin - 1 if _is_answer(items[begin]) else begin])


def _is_answer(item: JsonValue) -> bool:
    return isinstance(item, dict) and item.get("role") == "assistant"


def _newest_prompt(messages: _Messages | None) -> str | None:
    return next(iter(reversed(_prompts(messages))), None)


def _prompts(messages: _Messages | None) -> list[str]:
    said = (message for message in messages or () if message.role == "user")
    return [text for message in said if (text := _text(message))]


def _text(message: ChatMessage | None) -> str | None:
    return ("\n".join(texts_of(message.parts)) or None) if message else None


def _together(asked: _Messages | None, answer: ChatMessage | None) -> _Messages | None:
    """Nothing where the output sums up a whole run in one message: its order is not the conversation's."""
    return None if asked is None or answer is None or _sums_up(answer) else (*asked, answer)


def _sums_up(answer: ChatMessage | None) -> bool:
    return _tells_of(answer, ResultPart)


def _tells_of(answer: ChatMessage | None, *kinds: type[Part]) -> bool:
    return answer is not None and any(isinstance(part, kinds) for part in answer.parts)


def _all_parts(given: Iterable[ChatMessage], answer: ChatMessage | None) -> ChatMessage | None:
    """What work around calls was given of the conversation, and what it gave."""
    messages = (*given, *(() if answer is None else (answer,)))
    parts = tuple(part for message in messages if message.role != "system" for part in message.parts)
    return ChatMessage(role="assistant", parts=parts) if parts else None


def _final(value: JsonValue) -> JsonValue:
    """A structured output is JSON; any other is the text itself."""
    found = parsed(value)
    return found if isinstance(found, dict | list) else value


def _waiting(final: JsonValue) -> dict[str, str] | None:
    """Pydantic AI's `DeferredToolRequests`, with which a run ends that waits for somebody: how each call is left, by
    its id."""
    if not isinstance(final, dict) or not final.keys() >= {"calls", "approvals", "metadata"}:
        return None
    left = [(part, outcome) for name, outcome in _LEFT.items() for part in _listed_in(final, name)]
    found = {part.get("tool_call_id"): outcome for part, outcome in left if part.get("part_kind") == "tool-call"}
    return {str(call_id): outcome for call_id, outcome in found.items()} or None


_LEFT = {"calls": "deferred", "approvals": "unapproved"}


def _listed_in(value: JsonObject, name: str) -> list[JsonObject]:
    listed = value.get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _task_input(value: JsonValue) -> JsonValue:
    return _inside(value, "inputs")


def _task_output(value: JsonValue) -> JsonValue:
    return _inside(value, "outputs")


def _inside(value: JsonValue, name: str) -> JsonValue:
    found = parsed(value)
    return found[name] if isinstance(found, dict) and name in found else found
