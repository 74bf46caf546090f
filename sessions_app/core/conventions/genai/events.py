"""Messages as events (semantic conventions up to 1.36): log records, events of the span, or a list in an attribute.

| event | fields |
| --- | --- |
| `gen_ai.system.message`, `gen_ai.user.message` | `content` |
| `gen_ai.assistant.message` | `content`, `tool_calls` |
| `gen_ai.tool.message` | `content`, `id` of the call |
| `gen_ai.choice` | `message`, `finish_reason`, `index` |

A log record has the fields in its body, which is structured. An event of a span has them in its attributes, which
cannot be: there a content may be the JSON text of blocks. Pydantic AI's first format lists events in an attribute.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_text
from sessions_app.core.spans.provider_messages import messages_of
from sessions_app.core.spans.provider_messages.messages import message_of
from sessions_app.core.spans.provider_messages.parts import part_of
from sessions_app.core.spans.reading import ChatMessage, OtherPart
from sessions_app.core.spans.span import Span, SpanEvent

CHOICE = "gen_ai.choice"
_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_WHOLE = {"gen_ai.content.prompt": "gen_ai.prompt", "gen_ai.content.completion": "gen_ai.completion"}
"""Older still: one event with all messages, in an attribute of its own."""

_CONTENT = "gen_ai.event.content"
_OF_A_MESSAGE = ({"role", "content"}, {"role", "tool_calls"}, {"index", "message"}, {"finish_reason", "message"})
"""What tells them from JSON that somebody said."""

_Event = tuple[str, JsonObject]


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What the events say together."""

    messages: tuple[ChatMessage, ...] | None = None
    answer: ChatMessage | None = None
    finish_reason: str | None = None
    choice: JsonValue = None
    """The message of the choice as it came: on the span of a tool it is the tool's result."""
    asked: JsonValue = None
    """The content of the tool's message as it came: on the span of a tool these are the arguments."""
    results: tuple[ChatMessage, ...] = ()
    """What the tools gave that the choice asks for, where Strands puts that beside it."""


def told_by(span: Span) -> Told | None:
    """None when no event holds a message; those of the span itself come before log records."""
    if not span.events and not span.logs:
        return None
    whole = _whole(span.events) or _whole(span.logs)
    return whole or told_in(list(map(_of_span, span.events))) or told_in(list(map(_of_log, span.logs)))


def told_in_list(value: JsonValue) -> Told | None:
    """Events that an attribute lists, each with its `event.name`."""
    items = parsed(value)
    events = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return told_in([(str(event.get("event.name")), event) for event in events])


def told_in(events: list[_Event]) -> Told | None:
    """What a list of events says; None when none of them is a message."""
    said = [(name, fields) for name, fields in events if name in _ROLES]
    choice = next((fields for name, fields in events if name == CHOICE), None)
    if not said and choice is None:
        return None
    return Told(
        messages=_messages(said),
        answer=None if choice is None else _answer(choice),
        finish_reason=None if choice is None else as_text(choice.get("finish_reason")),
        choice=None if choice is None else choice.get("message"),
        asked=next((fields.get("content") for name, fields in said if name == "gen_ai.tool.message"), None),
        results=() if choice is None else _results(choice),
    )


def _results(choice: JsonObject) -> tuple[ChatMessage, ...]:
    """Nothing where the attribute, which others could use as well, holds no blocks."""
    blocks = choice.get("tool.result")
    return tuple(message_of({"role": "tool", "content": blocks}) or ()) if isinstance(blocks, list) else ()


def _of_span(event: SpanEvent) -> _Event:
    return event.name, _with_content({name: _structured(value) for name, value in event.attributes.items()})


def _of_log(event: SpanEvent) -> _Event:
    """Some can write a body as a text only: it is the JSON of one."""
    body = event.body if isinstance(event.body, dict) else _structured(event.body)
    if isinstance(body, dict):
        return event.name, body
    return event.name, _with_content({**event.attributes, **({} if body is None else {"content": event.body})})


def _with_content(fields: JsonObject) -> JsonObject:
    """Azure's client puts the body into one attribute, as JSON."""
    content = parsed(fields.get(_CONTENT))
    return {**fields, **content} if isinstance(content, dict) else fields


def _structured(value: JsonValue) -> JsonValue:
    """An attribute cannot hold an object: the JSON of a message, of a choice, or of blocks, is read; any other text
    stays one."""
    found = parsed(value)
    is_message = isinstance(found, dict) and any(keys <= found.keys() for keys in _OF_A_MESSAGE)
    return found if is_message else _blocks(value)


def _blocks(value: JsonValue) -> JsonValue:
    """The blocks that a text holds as JSON; any other text stays one."""
    found = parsed(value)
    is_blocks = isinstance(found, list) and bool(found) and all(map(_is_block, found))
    return found if is_blocks else value


def _is_block(item: JsonValue) -> bool:
    return isinstance(item, dict) and not isinstance(part_of(item), OtherPart)


def _messages(said: list[_Event]) -> tuple[ChatMessage, ...] | None:
    """None also when content was switched off, which leaves messages without any."""
    if not said or any(_is_hollow(fields) for _, fields in said):
        return None
    read = [message_of({**fields, "role": as_text(fields.get("role")) or _ROLES[name]}) for name, fields in said]
    return tuple(message for messages in read for message in messages or ())


def _is_hollow(fields: JsonObject) -> bool:
    return fields.get("content") is None and not fields.get("tool_calls")


def _answer(choice: JsonObject) -> ChatMessage | None:
    said = choice.get("message", choice.get("content"))
    fields = said if isinstance(said, dict) else {"content": said}
    fields = {"tool_calls": choice.get("tool_calls"), **fields, "role": "assistant"}
    if _is_hollow(fields):
        return None
    parts = tuple(part for message in message_of(fields) or () for part in message.parts)
    return ChatMessage(role="assistant", parts=parts)


def _whole(events: Iterable[SpanEvent]) -> Told | None:
    said = {event.name: event.attributes.get(_WHOLE[event.name]) for event in events if event.name in _WHOLE}
    messages = messages_of(said.get("gen_ai.content.prompt"))
    answers = messages_of(said.get("gen_ai.content.completion"))
    if messages is None and answers is None:
        return None
    return Told(messages=messages, answer=answers[-1] if answers else None)
