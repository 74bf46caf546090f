"""Messages in the attributes of OpenLLMetry before it took up `gen_ai.input.messages`.

`gen_ai.prompt.N.role|content|tool_call_id|tool_calls.M.id|name|arguments` and likewise `gen_ai.completion.N`.
Content of several parts is a JSON list in the provider's words.
"""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app.core.conventions.numbered import below, numbered
from sessions_app.core.conventions.roles import role_of
from sessions_app.core.conventions.wrapped_tools import decoded_once
from sessions_app.core.embedded_json import parsed
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

_KINDS = frozenset(
    {
        "text",
        "input_text",
        "output_text",
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "image",
        "image_url",
        "input_image",
        "input_audio",
        "document",
        "file",
    }
)
"""Parts of a content list; a text that happens to hold another list is a text."""


def prompts(items: Iterable[JsonObject]) -> tuple[ChatMessage, ...] | None:
    """All input messages; None when none has content."""
    messages = tuple(message for each in items for message in _messages(each))
    return messages if any(message.parts for message in messages) else None


def completion(items: list[JsonObject]) -> ChatMessage | None:
    """The answer, of several choices the first."""
    parts = _parts(items[0]) if items else ()
    spelled = as_text(items[0].get("role")) if items else None
    return ChatMessage(role="assistant", parts=parts, spelled_role=spelled) if parts else None


def _messages(said: JsonObject) -> list[ChatMessage]:
    """One, or two where a user's message brings answers of tools and words of its own."""
    role, spelled = role_of(said.get("role"), "assistant" if _has_calls(said) else "user"), as_text(said.get("role"))
    if role == "tool":
        return [ChatMessage(role="tool", parts=_result(said), spelled_role=spelled)]
    parts = _parts(said)
    results = tuple(part for part in parts if isinstance(part, ResultPart))
    others = tuple(part for part in parts if not isinstance(part, ResultPart))
    split: tuple[tuple[Role, tuple[Part, ...]], ...] = (("tool", results), (role, others))
    return [
        ChatMessage(role=each, parts=some, spelled_role=spelled)
        for each, some in split
        if some or (each == role and not results)
    ]


def _has_calls(said: JsonObject) -> bool:
    return any(name.startswith("tool_calls.") for name in said)


def _result(said: JsonObject) -> tuple[Part, ...]:
    content, call_id = said.get("content"), as_text(said.get("tool_call_id"))
    if content is None and call_id is None:
        return ()
    return (ResultPart(call_id=call_id, tool_name=as_text(said.get("name")), content=content),)


def _parts(said: JsonObject) -> tuple[Part, ...]:
    content = said.get("content")
    blocks = _blocks(content)
    parts = _text(content) if blocks is None else [_part(block) for block in blocks]
    parts = [*parts, *_calls(said)]
    return tuple(part for part in parts if part != TextPart(text="")) or tuple(parts[:1])


def _text(content: JsonValue) -> list[Part]:
    """An empty text is also sent as the JSON of one."""
    if content is None:
        return []
    if not isinstance(content, str):
        return [OtherPart(kind="content", value=content)]
    return [TextPart(text="" if content == '""' else content)]


def _blocks(content: JsonValue) -> list[JsonObject] | None:
    value = parsed(content) if isinstance(content, str) and content.lstrip().startswith("[") else content
    if not isinstance(value, list) or not value:
        return None
    return value if all(isinstance(each, dict) and _is_known(each.get("type")) for each in value) else None


def _is_known(kind: JsonValue) -> bool:
    return isinstance(kind, str) and kind in _KINDS


def _part(block: JsonObject) -> Part:
    kind, text = str(block["type"]), block.get("text")
    name, call_id = as_text(block.get("name")), as_text(block.get("id"))
    if kind.endswith("text") and isinstance(text, str):
        return TextPart(text=text)
    if kind == "tool_use" and name is not None:
        return CallPart(tool_name=name, call_id=call_id, arguments=block.get("input"))
    if kind == "tool_result":
        answered, is_error = as_text(block.get("tool_use_id")), block.get("is_error") is True
        return ResultPart(call_id=answered, content=block.get("content"), is_error=is_error)
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return ThinkingPart(text=block["thinking"], signature=as_text(block.get("signature")))
    return OtherPart(kind=kind, value=block)


def _calls(said: JsonObject) -> list[Part]:
    return [_call(each) for each in numbered(below(said, "tool_calls.")) if any(each.values())]


def _call(said: JsonObject) -> Part:
    name = as_text(said.get("name"))
    if name is None:
        return OtherPart(kind="tool_call", value=said)
    return CallPart(tool_name=name, call_id=as_text(said.get("id")), arguments=decoded_once(said.get("arguments")))
