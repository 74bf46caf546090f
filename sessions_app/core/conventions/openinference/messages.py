"""Messages in OpenInference's flattened attributes.

Source: the OpenInference semantic conventions, `message.*`, `message_content.*` and `tool_call.*`.
"""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app.core.conventions.numbered import below, numbered
from sessions_app.core.conventions.roles import role_of
from sessions_app.core.conventions.wrapped_tools import decoded_once, unwrapped_result
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_text
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    OtherPart,
    Part,
    ResultPart,
    Role,
    TextPart,
    ThinkingPart,
)

HIDDEN = "__REDACTED__"
"""What OpenInference writes where it was told to leave a value out."""
_TEXTS = (None, "text", "input_text", "output_text")
_THOUGHTS = ("thinking", "reasoning")
_FUNCTION = "tool_call.function."


def told(value: JsonValue) -> JsonValue:
    return None if value == HIDDEN else value


def input_messages(values: JsonObject) -> tuple[ChatMessage, ...] | None:
    """Of what stands below `llm.input_messages.`; None when no message has content."""
    messages = tuple(_message(each) for each in numbered(values))
    return messages if any(message.parts for message in messages) else None


def answer_of(values: JsonObject, *, is_choice: bool) -> ChatMessage | None:
    """Of what stands below `llm.output_messages.`: the first one of several choices, or all items of one answer."""
    messages = [_message(each, "assistant") for each in numbered(values)]
    parts = tuple(part for message in messages[: 1 if is_choice else None] for part in message.parts)
    spelled = messages[0].spelled_role if messages else None
    return ChatMessage(role="assistant", parts=parts, spelled_role=spelled) if parts else None


def _message(said: JsonObject, default: Role | None = None) -> ChatMessage:
    role = role_of(said.get("message.role"), default or _role_without_name(said))
    parts = _result(said) if role == "tool" else _parts(said)
    name = as_text(said.get("message.name")) if role == "user" else None
    return ChatMessage(role=role, parts=parts, spelled_role=as_text(said.get("message.role")), name=name)


def _role_without_name(said: JsonObject) -> Role:
    if "message.tool_call_id" in said:
        return "tool"
    return "assistant" if any(name.startswith("message.tool_calls.") for name in said) else "user"


def _result(said: JsonObject) -> tuple[Part, ...]:
    content = told(said.get("message.content"))
    if content is None:
        content = _text_of(_contents(said))
    inner = unwrapped_result(content)
    call_id, name = as_text(said.get("message.tool_call_id")), as_text(said.get("message.name"))
    if content is None and call_id is None:
        return ()
    return (ResultPart(call_id=call_id, tool_name=name, content=inner.value, is_error=inner.is_error),)


def _text_of(parts: Iterable[Part]) -> JsonValue:
    """The one text; several things as a list."""
    values = [_plain(part) for part in parts]
    return values[0] if len(values) == 1 else values or None


def _plain(part: Part) -> JsonValue:
    match part:
        case TextPart() | ThinkingPart():
            return part.text
        case OtherPart():
            return part.value
        case _:
            return None


def _parts(said: JsonObject) -> tuple[Part, ...]:
    contents = _contents(said)
    has_text = any(isinstance(part, TextPart) for part in contents)
    text = [] if has_text else _content(told(said.get("message.content")))
    parts = [*contents, *text, *_calls(said, contents)]
    return tuple(part for part in parts if part != TextPart(text="")) or tuple(parts[:1])


def _content(value: JsonValue) -> list[Part]:
    if value is None:
        return []
    return [TextPart(text=value) if isinstance(value, str) else OtherPart(kind="content", value=value)]


def _contents(said: JsonObject) -> list[Part]:
    found = (_content_part(each) for each in numbered(below(said, "message.contents.")))
    return [part for part in found if part is not None]


def _content_part(each: JsonObject) -> Part | None:
    if as_text(each.get(f"{_FUNCTION}name")) is not None:
        return _call(each)
    said = {name: value for name, value in below(each, "message_content.").items() if told(value) is not None}
    kind, text = said.pop("type", None), said.get("text")
    if kind in _THOUGHTS and isinstance(text, str):
        return ThinkingPart(text=text, id=as_text(said.get("id")), signature=as_text(said.get("signature")))
    if isinstance(text, str) and (kind in _TEXTS or len(said) == 1):
        return TextPart(text=text)
    return OtherPart(kind=as_text(kind) or "unknown", value=said) if said else None


def _calls(said: JsonObject, contents: Iterable[Part]) -> list[Part]:
    """Those that do not stand among the contents already."""
    known = {part.call_id for part in contents if isinstance(part, CallPart)}
    listed = [_call(each) for each in numbered(below(said, "message.tool_calls."))]
    found = [part for part in [*listed, _old_call(said)] if part is not None]
    if not known:
        return found
    return [part for part in found if isinstance(part, CallPart) and part.call_id not in {None, *known}]


def are_told_otherwise(values: JsonObject) -> bool:
    """Of what stands below `llm.input_messages.` or `llm.output_messages.`: whether a message tells its text or its
    calls among its contents and beside them, and not alike."""
    return any(_has_other_calls(each) or _has_another_text(each) for each in numbered(values))


def _has_other_calls(said: JsonObject) -> bool:
    contents = (_content_part(each) for each in numbered(below(said, "message.contents.")))
    listed = (_call(each) for each in numbered(below(said, "message.tool_calls.")))
    one, other = ([part for part in parts if isinstance(part, CallPart)] for parts in (contents, listed))
    return bool(one and other) and one != other


def _has_another_text(said: JsonObject) -> bool:
    texts = [part.text for part in _contents(said) if isinstance(part, TextPart)]
    text = told(said.get("message.content"))
    joined = {between.join(texts) for between in ("", "\n", "\n\n")}
    return bool(texts and text) and isinstance(text, str) and text not in joined


def _call(each: JsonObject) -> Part | None:
    name, call_id = as_text(each.get(f"{_FUNCTION}name")), as_text(each.get("tool_call.id"))
    arguments = decoded_once(told(each.get(f"{_FUNCTION}arguments")))
    if name is not None:
        return CallPart(tool_name=name, call_id=call_id, arguments=arguments)
    said = {key: value for key, value in each.items() if value is not None}
    return OtherPart(kind="tool_call", value=said) if said else None


def _old_call(said: JsonObject) -> Part | None:
    """`function_call` of a message, from before models asked for several tools at once."""
    name = as_text(said.get("message.function_call_name"))
    arguments = decoded_once(told(said.get("message.function_call_arguments_json")))
    return None if name is None else CallPart(tool_name=name, arguments=arguments)
