"""A model's request and answer in the bodies of an HTTP exchange, for those who know no spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import HttpExchange
from sessions_app.core.spans.provider_messages.failures import failure_of
from sessions_app.core.spans.provider_messages.requests import request_of
from sessions_app.core.spans.provider_messages.responses import (
    ProviderResponse,
    is_response,
    response_of,
    tokens_of_event,
)
from sessions_app.core.spans.provider_messages.streams import events_in, is_ended
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    OtherPart,
    ResultPart,
    TextPart,
    ThinkingPart,
    ToolDefinition,
)

Part = TypeVar("Part", CallPart, OtherPart, ResultPart, ThinkingPart)


@dataclass(frozen=True, kw_only=True, slots=True)
class WireCall:
    """A call that a model asks for."""

    name: str
    call_id: str | None
    """None where the protocol has no ids of calls."""
    arguments: JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class WireAnswer:
    """What a model answered, as it came over the wire."""

    words: str
    spelled: str
    """Its words with what they stand among, such as searches that ran at the provider."""
    calls: tuple[WireCall, ...]
    has_thoughts: bool
    model: str | None
    finish_reason: str | None
    input_tokens: frozenset[int]
    output_tokens: frozenset[int]
    """What a library may make of the counts, none where there are none: of those in a stream, which may come with
    several events, some take the newest and some the sum."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WireImage:
    """An image that a model is shown."""

    url: str
    """A link, which may hold the image itself."""
    detail: JsonValue
    """How closely the model is to look; None where it is left to the provider."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WireRequest:
    """What a model was told."""

    prompts: tuple[str, ...]
    """Texts of the user."""
    others: tuple[str, ...]
    """Texts of the system, and those that tools gave."""
    names: tuple[str | None, ...]
    """Who says each message of a user, where it tells."""
    images: tuple[WireImage, ...]
    """Of the user, where the protocol tells them as links."""
    answers: tuple[str, ...]
    """What earlier answers said and thought."""
    is_continued: bool
    """Whether the provider was to add what it had been told before."""
    calls: tuple[WireCall, ...]
    """Those that earlier answers had asked for."""
    answered: tuple[str, ...]
    """The ids of calls whose answers it holds."""
    tools: tuple[ToolDefinition, ...]
    model: str | None
    settings: JsonObject


def body_value(body: Payload | None) -> JsonValue:
    """What a body says; None where it was not captured, and for bytes of other kinds."""
    return body.value if body is not None and (body.is_text or body.is_json) else None


def said_in(body: Payload | None) -> JsonValue:
    """What it says, or the events of a stream of them."""
    value = body_value(body)
    events = events_in(value) if isinstance(value, str) else None
    return value if events is None else [*events]


def is_whole(http: HttpExchange) -> bool:
    """Whether the body of the answer is held from its beginning to its end, or to an error in it. Who reads a stream of
    events leaves it behind the last one, and need not read on to the end of the body."""
    if http.extra.get("body_cut") or http.extra.get("body_left_out"):
        return False
    said = said_in(http.response_body)
    if isinstance(said, list) and is_ended(said):
        return True
    return not http.extra.get("incomplete") and not (isinstance(said, list) and failure_of(said))


def failure_in(http: HttpExchange) -> JsonValue:
    """What the client raised over the answer, or what that says of itself. Who stops reading may be stopped by an error
    of their own."""
    raised = None if http.extra.get("incomplete") else http.extra.get("error")
    return raised or failure_of(said_in(http.response_body))


def wire_request(body: Payload) -> WireRequest | None:
    """None where the body is no request of a protocol that is known here."""
    value = parsed(body_value(body))
    found = request_of(value) if isinstance(value, dict) else None
    if found is None:
        return None
    users = [message for message in found.messages if message.role == "user"]
    others = [message for message in found.messages if message.role in ("system", "tool")]
    answers = [message for message in found.messages if message.role == "assistant"]
    instructions = [] if found.instructions is None else [found.instructions]
    return WireRequest(
        prompts=tuple(text for message in users for text in _texts_of(message)),
        others=(*instructions, *(text for message in others for text in _texts_of(message))),
        names=tuple(message.name for message in users),
        images=tuple(filter(None, map(_image, _parts_of(users, OtherPart)))),
        answers=tuple(part.text for message in answers for part in message.parts if isinstance(part, _WORDS)),
        is_continued=any(value.get(name) for name in ("previous_response_id", "conversation")),
        calls=tuple(_call(part) for part in _parts_of(found.messages, CallPart) if not part.is_builtin),
        answered=tuple(part.call_id for part in _parts_of(found.messages, ResultPart) if part.call_id),
        tools=found.tools or (),
        model=found.model,
        settings=found.settings or {},
    )


_WORDS = (TextPart, ThinkingPart)


def _call(part: CallPart) -> WireCall:
    return WireCall(name=part.tool_name, call_id=part.call_id, arguments=part.arguments)


def _parts_of(messages: Iterable[ChatMessage], kind: type[Part]) -> Iterator[Part]:
    return (part for message in messages for part in message.parts if isinstance(part, kind))


def _image(part: OtherPart) -> WireImage | None:
    """As OpenAI's protocols tell it: in an object of its own, or flat."""
    said = part.value if isinstance(part.value, dict) else {}
    inner = said.get("image_url")
    found: JsonObject = inner if isinstance(inner, dict) else {"url": inner, "detail": said.get("detail")}
    url = found.get("url")
    return WireImage(url=url, detail=found.get("detail")) if isinstance(url, str) else None


def _texts_of(message: ChatMessage) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, TextPart):
            yield part.text
        elif isinstance(part, ResultPart):
            yield from _texts_in(part.content)


def _texts_in(value: JsonValue) -> Iterator[str]:
    """Some protocols put an object around the text that a tool gave."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts_in(inner)


def wire_answer(body: Payload) -> WireAnswer | None:
    """None where the body is no answer of a protocol that is known here; one without a word may be empty."""
    said = parsed(said_in(body))
    found = response_of(said) or (_EMPTY if is_response(said) else None)
    if found is None:
        return None
    counts = list(map(tokens_of_event, said if isinstance(said, list) else ()))
    return WireAnswer(
        words=found.answer.words(),
        spelled="".join(_spelled(found.answer)),
        calls=tuple(_call(part) for part in _parts_of([found.answer], CallPart) if not part.is_builtin),
        has_thoughts=any(_parts_of([found.answer], ThinkingPart)),
        model=found.model,
        finish_reason=found.finish_reason,
        input_tokens=_counted(found.input_tokens, [count for count, _ in counts]),
        output_tokens=_counted(found.output_tokens, [count for _, count in counts]),
    )


_EMPTY = ProviderResponse(answer=ChatMessage(role="assistant", parts=()))


def _spelled(message: ChatMessage) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, TextPart | OtherPart):
            yield part.text if isinstance(part, TextPart) else part.spelled


def _counted(newest: int | None, each: list[int | None]) -> frozenset[int]:
    known = [count for count in each if count is not None]
    return frozenset([*([] if newest is None else [newest]), *([sum(known)] if known else [])])
