"""Some conventions keep a provider's request and answer as they were, beside or in place of their own attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sessions_app.core.conventions.bodies import put_request, put_response
from sessions_app.core.conventions.merging import merged
from sessions_app.core.conventions.told_twice import (
    are_instructions_told_otherwise,
    are_settings_told_otherwise,
    ids_in,
    is_repeated_otherwise,
    lacks_tools,
    said_in,
    spoken_in,
)
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.provider_messages import ProviderResponse, is_response, request_of, response_of, tools_of
from sessions_app.core.spans.provider_messages.requests import instructions_of, settings_of
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    Part,
    Reading,
    ResultPart,
    Role,
    TextPart,
    ToolDefinition,
)

Messages = tuple[ChatMessage, ...]


def with_bodies(reading: Reading) -> Reading:
    """The reading of a model call with its gaps filled from the bodies, which may tell the same otherwise; any other as
    it is."""
    if reading.kind != "model" or (reading.input is None and reading.output is None):
        return reading
    request, response = request_of(reading.input), response_of(reading.output)
    bodies = _plain(reading)
    if request is not None:
        put_request(bodies, request)
        # A request that names its model is a whole one.
        reading.are_tools_told_otherwise |= request.model is not None and lacks_tools(request.tools, reading.tools)
    if response is not None:
        put_response(bodies, response)
    reading.are_messages_told_otherwise |= _is_emptied(reading.output, response) and bool(_answers(reading.answer))
    reading.are_messages_told_otherwise |= are_instructions_told_otherwise(reading, bodies)
    if reading.messages is not None:
        bodies.instructions = None
        reading.messages = _with_ids(reading.messages, bodies.messages or ())
    whole = merged([reading, bodies])
    _hold_against_echo(whole, parsed(whole.output))
    return whole


def _is_emptied(output: JsonValue, response: ProviderResponse | None) -> bool:
    return is_response(parsed(output)) and not _answers(None if response is None else response.answer)


def _answers(answer: ChatMessage | None) -> list[bytes]:
    return [] if answer is None else said_in((answer,))


def _with_ids(messages: Messages, sent: Messages) -> Messages:
    """The messages with the ids of calls that the convention leaves out of them, where the request says the same."""
    if None not in ids_in(messages) or spoken_in(messages) != spoken_in(sent):
        return messages
    ids = iter(ids_in(sent))
    return tuple(replace(each, parts=tuple(_with_id(part, ids) for part in each.parts)) for each in messages)


def _with_id(part: Part, ids: Iterator[str | None]) -> Part:
    if not isinstance(part, CallPart | ResultPart):
        return part
    sent = next(ids)
    return part if part.call_id is not None else replace(part, call_id=sent)


def _hold_against_echo(reading: Reading, response: JsonValue) -> None:
    """OpenAI's Responses API repeats in its response what was asked for; schemas of tools it may make stricter."""
    if not isinstance(response, dict) or response.get("object") != "response":
        return
    if "tools" in response and reading.tools is not None:
        reading.are_tools_told_otherwise |= _are_repeated_otherwise(reading.tools, tools_of(response["tools"]) or ())
    reading.are_settings_told_otherwise |= are_settings_told_otherwise(reading.settings, settings_of(response))
    instructions = instructions_of(response.get("instructions"))
    reading.are_messages_told_otherwise |= is_repeated_otherwise(instructions, reading.messages, reading.instructions)


def _are_repeated_otherwise(asked: Sequence[ToolDefinition], repeated: Sequence[ToolDefinition]) -> bool:
    """Of functions: conventions may leave out the tools of the provider, and descriptions."""
    one, other = ([tool for tool in each if tool.parameters is not None] for each in (asked, repeated))
    known = {tool.name: tool.description for tool in asked if tool.description}
    told = ((tool.description, known.get(tool.name)) for tool in repeated)
    is_reworded = any(None not in both and both[0] != both[1] for both in told)
    return is_reworded or lacks_tools(asked, other) or lacks_tools(repeated, one)


def _plain(reading: Reading) -> Reading:
    asked = _words(reading.input, "user") if reading.messages is None else None
    answered = None if _tells_no_other_answer(reading) else _words(reading.output, "assistant")
    if answered is not None and reading.answer is not None:
        answered = replace(answered, parts=_with_words(reading.answer.parts, answered.parts))
    messages = None if asked is None else (asked,)
    return Reading(convention=reading.convention, messages=messages, answer=answered)


def _with_words(parts: Sequence[Part], words: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts of an answer with other words in place of its own, which may stand beside calls of tools."""
    if sum(isinstance(part, TextPart) for part in parts) != 1:
        return words
    return tuple(each for part in parts for each in (words if isinstance(part, TextPart) else (part,)))


def _tells_no_other_answer(reading: Reading) -> bool:
    """Whether what came out cannot be held against the answer, which asks for tools, or is the answer as LlamaIndex
    prints it, with who speaks in front of it."""
    words = None if reading.answer is None else reading.answer.words()
    return words is not None and (not words or reading.output == f"assistant: {words}")


def _words(value: JsonValue, role: Role) -> ChatMessage | None:
    """Plain text that went in or came out is a prompt or its answer; JSON that nobody knows is not guessed at."""
    if not isinstance(value, str) or not value.strip() or not isinstance(parsed(value), str):
        return None
    return ChatMessage(role=role, parts=(TextPart(text=value),))
