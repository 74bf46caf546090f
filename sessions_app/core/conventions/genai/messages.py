"""`gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions` (semantic conventions from 1.37).

A message is `{"role", "parts": [{"type", …}]}`. Where content was switched off the parts stay, without their content:
such a list of messages was not captured.
"""

from __future__ import annotations

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.shared_values import each_once
from sessions_app.core.spans.provider_messages import messages_of
from sessions_app.core.spans.provider_messages.messages import message_of
from sessions_app.core.spans.provider_messages.parts import parts_of
from sessions_app.core.spans.reading import ChatMessage, Part, TextPart

_CONTENTS = {
    "text": ("content", "text"),
    "tool_call_response": ("response", "result", "content", "output"),
}
"""Where the parts of each type have their content."""


def input_of(value: JsonValue) -> tuple[ChatMessage, ...] | None:
    """Messages that went in, oldest first; None when they cannot be read or are without their content."""
    items = _items(value)
    return None if any(_are_hollow(items)) else messages_of(items)


def answer_of(value: JsonValue) -> ChatMessage | None:
    """All that the model said, as one message; of calls for tools also those without their arguments."""
    items = _whole(_items(value))
    read = [messages for item in items if (messages := message_of(_without_hollow(item)))]
    parts = tuple(part for messages in read for message in messages for part in message.parts)
    is_captured = bool(read) and (bool(parts) or not any(map(_is_hollow, items)))
    spelled = next((message.spelled_role for messages in read for message in messages), None)
    return ChatMessage(role="assistant", parts=parts, spelled_role=spelled) if is_captured else None


def first_of(value: JsonValue) -> JsonValue:
    """The first of several alternative answers, where so many were asked for."""
    return _items(value)[:1]


def finish_reason_of(value: JsonValue) -> str | None:
    """The last reason that stands in the output messages."""
    said = (item.get("finish_reason") for item in reversed(_items(value)) if isinstance(item, dict))
    return next((reason for reason in said if isinstance(reason, str) and reason), None)


def instructions_of(value: JsonValue) -> str | None:
    """The system prompt: a list of parts, or plain text. A list that was cut off is neither."""
    found = parsed(value)
    if isinstance(found, str) and found.lstrip().startswith("[{"):
        return None
    return "\n\n".join(texts_of(parts_of(found))) or None


def parts_in(value: JsonValue) -> list[Part]:
    """The parts of all messages, whoever said them."""
    messages = (item for item in _items(value) if isinstance(item, dict))
    return [part for item in messages for part in parts_of(item.get("parts"))]


def texts_of(parts: list[Part] | tuple[Part, ...]) -> list[str]:
    return [part.text for part in parts if isinstance(part, TextPart)]


def _items(value: JsonValue) -> list[JsonValue]:
    found = parsed(value)
    if isinstance(found, dict):
        return [found]
    return found if isinstance(found, list) else []


def _parts(item: JsonValue) -> list[JsonValue]:
    parts = item.get("parts") if isinstance(item, dict) else None
    return parts if isinstance(parts, list) else []


def _lacks_content(part: JsonValue) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    names = _CONTENTS.get(kind) if isinstance(kind, str) else None
    return names is not None and not any(name in part for name in names)


def _is_hollow(item: JsonValue) -> bool:
    return any(map(_lacks_content, _parts(item)))


_are_hollow = each_once(_is_hollow)


def _without_hollow(item: JsonValue) -> JsonValue:
    if not _is_hollow(item):
        return item
    return {**item, "parts": [part for part in _parts(item) if not _lacks_content(part)]}


def _whole(items: list[JsonValue]) -> list[JsonValue]:
    """The answer that was streamed, where its pieces (with an empty finish reason) stand before the finished message.

    The finished message may be the whole answer or only the last piece.
    """
    pieces = [item for item in items if _is_piece(item)]
    rest = [item for item in items if not _is_piece(item)]
    if not pieces or not rest:
        return items
    begun, ended = _text(pieces), _text(rest)
    is_whole = begun in ("", ended) or _has_most_of(ended, pieces)
    return rest if is_whole else [_message(begun + ended), *map(_without_text, rest)]


def is_streamed_otherwise(value: JsonValue) -> bool:
    """Whether the finished message is the whole answer, and not the one that its pieces make."""
    items = _items(value)
    pieces, ended = list(filter(_is_piece, items)), _text([item for item in items if not _is_piece(item)])
    return _text(pieces) not in ("", ended) and _has_most_of(ended, pieces)


def _has_most_of(text: str, pieces: list[JsonValue]) -> bool:
    words = [said for piece in pieces if (said := _text([piece]))]
    return 2 * len(text) > len("".join(words)) and 2 * sum(said in text for said in words) > len(words)


def _is_piece(item: JsonValue) -> bool:
    return isinstance(item, dict) and item.get("finish_reason") == ""


def _text(items: list[JsonValue]) -> str:
    return "".join(texts_of([part for item in items for part in parts_of(_parts(item))]))


def _message(text: str) -> JsonObject:
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


def _without_text(item: JsonValue) -> JsonValue:
    if not isinstance(item, dict):
        return item
    return {**item, "parts": [part for part in _parts(item) if not texts_of(parts_of([part]))]}
