"""Messages of a conversation, each read by its own shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, groupby

from sessions_app.core.embedded_json import arguments_in, parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.shared_values import each_once, once_each
from sessions_app.core.spans.provider_messages.fields import entries, entry, text
from sessions_app.core.spans.provider_messages.parts import call_of, part_of, parts_of, plain, result_of
from sessions_app.core.spans.reading import CallPart, ChatMessage, OtherPart, Part, ResultPart, Role, TextPart

ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
_CLASSES: dict[str, Role] = {
    f"{name}message{chunk}": ROLES[name]
    for name in ("system", "human", "ai", "tool", "function")
    for chunk in ("", "chunk")
}
"""LangChain's own names of its messages."""
_TYPES = ROLES | _CLASSES


def messages_of(value: JsonValue) -> tuple[ChatMessage, ...] | None:
    """A list of messages, oldest first; the first of several lists (LangChain's batches); None if it is neither.

    Results of tools always make a message of role `tool` of their own.
    """
    items = _items(parsed(value))
    if not items or not all(isinstance(item, dict | list) for item in items):
        return None
    read = _read_items(items)
    said, is_known, is_piece = zip(*read, strict=True)
    if not any(is_known) or None in said:
        return None
    return tuple(_joined(said, is_piece) if any(is_piece) else chain.from_iterable(said))


def messages_in_state(value: JsonValue) -> tuple[ChatMessage, ...] | None:
    """Those in the state of a LangGraph agent, `{"messages": []}`, whatever else it holds."""
    return messages_of(value.get("messages")) if isinstance(value, dict) else None


def last_words(value: JsonValue, role: Role) -> JsonValue:
    """The text of the last message, where the value is nothing but messages (as the state of a LangGraph agent is)
    and that one is of this role; any other value as it is."""
    if isinstance(value, dict) and value.keys() == {"messages"}:
        return last_words(value["messages"], role) if isinstance(value["messages"], list) else value
    last = (messages_of(value) or (None,))[-1]
    if last is None or last.role != role or not last.parts:
        return value
    texts = [part.text for part in last.parts if isinstance(part, TextPart)]
    return "\n".join(texts) if len(texts) == len(last.parts) else value


def _read_item(item: JsonValue) -> tuple[list[ChatMessage] | None, bool, bool]:
    """The messages that one item of a list makes, whether anybody here knows it, and whether it may be a piece of an
    answer."""
    if not item:  # the shortest thing that a list of a million can be made of
        return None, False, False
    messages, is_item = message_of(item), _is_item(item)
    is_piece = is_item and _role(langchain_fields(item)) is None
    is_known = messages is not None
    return messages if is_known or not is_item else [_unknown(item)], is_known, is_piece


_read_items = each_once(_read_item)


@once_each
def message_of(item: JsonValue) -> list[ChatMessage] | None:
    """The messages that one item makes, several when it mixes a tool's results with others; None if it is none."""
    if isinstance(item, list):
        return _of_pair(item)
    if not isinstance(item, dict):
        return None
    said = langchain_fields(item)
    role = _role(said)
    if role is None:
        return _of_item(said)
    messages = [_of_user(each, said) for each in _split(role, _parts(role, said), text(said, "role"))]
    return [replace(each, are_calls_told_otherwise=True) for each in messages] if _has_other_calls(said) else messages


def _of_user(message: ChatMessage, said: JsonObject) -> ChatMessage:
    name = text(said, "name") if message.role == "user" else None
    return message if name is None else replace(message, name=name)


def langchain_fields(item: JsonObject) -> JsonObject:
    """A message without LangChain's wrapping: `{"lc": 1, "id": [..., class], "kwargs": {}}`, `{"type", "data": {}}`."""
    path, kwargs = item.get("id"), item.get("kwargs")
    if isinstance(kwargs, dict) and isinstance(path, list) and path and isinstance(path[-1], str):
        return {"type": path[-1], **kwargs} if path[-1].lower() in _CLASSES else item
    data = item.get("data")
    if isinstance(data, dict) and "content" in data and _kind(item) in _TYPES:
        return {"type": item["type"], **data}
    return item


def _items(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list) or not value:
        return []
    is_batch = isinstance(value[0], list) and _of_pair(value[0]) is None
    return value[0] if is_batch else value


def _of_pair(item: list[JsonValue]) -> list[ChatMessage] | None:
    """LangChain takes `["user", "words"]` for a message."""
    if len(item) != 2 or not isinstance(item[0], str) or item[0].lower() not in _TYPES:
        return None
    return _split(_TYPES[item[0].lower()], parts_of(item[1]))


def _role(said: JsonObject) -> Role | None:
    """None when this is no message; a role that nobody here knows counts as the user's."""
    role = text(said, "role")
    if role is not None:
        return ROLES.get(role.lower(), "user") if any(name in said for name in _CONTENTS) else None
    if "content" in said and _kind(said) in _TYPES:
        return _TYPES[_kind(said)]
    google = entries(said, "parts")
    return "user" if google and all(_is_known(each) for each in google) else None


_CONTENTS = ("content", "parts", "tool_calls", "toolCalls", "function_call")


def _kind(item: JsonObject) -> str:
    return (text(item, "type") or "").lower()


def _is_known(part: JsonValue) -> bool:
    return isinstance(part, dict) and not isinstance(part_of(part), OtherPart)


def _parts(role: Role, said: JsonObject) -> list[Part]:
    parts = parts_of(said.get("content")) + parts_of(said.get("parts"))
    if role == "tool" and not any(isinstance(part, ResultPart) for part in parts):
        content = said.get("content")
        return [replace(result_of({**said, "output": None, "content": None}), content=plain(content))]
    calls = _calls(said)
    named = {call.call_id for call in calls if call.call_id}
    # LangChain keeps Anthropic's own blocks in the content and says the same calls again.
    kept = [part for part in parts if not (isinstance(part, CallPart) and part.call_id in named)]
    return [*_reasoning(said), *kept, *parts_of(said.get("refusal")), *calls]


def _has_other_calls(said: JsonObject) -> bool:
    """Blocks that came as a stream have empty arguments there."""
    blocks = said.get("content")
    parts = parts_of(blocks) if isinstance(blocks, list) else []
    within = {part.call_id: part for part in parts if isinstance(part, CallPart) and part.arguments}
    pairs = [(call, within[call.call_id]) for call in (_calls(said) if within else ()) if call.call_id in within]
    return any(
        one.tool_name != other.tool_name or arguments_in(one.arguments) != arguments_in(other.arguments)
        for one, other in pairs
    )


def _reasoning(said: JsonObject) -> list[Part]:
    """OpenAI-compatible servers put a model's thinking beside the content."""
    thought = text(said, "reasoning_content", "reasoning")
    return [part_of({"type": "thinking", "thinking": thought})] if thought else []


def _calls(said: JsonObject) -> list[CallPart]:
    extra = entry(said, "additional_kwargs")
    items = entries(said, "tool_calls", "toolCalls") or entries(extra, "tool_calls")
    items = items + entries(said, "invalid_tool_calls") or [entry(said, "function_call")]
    # Where a list cannot hold objects, each is JSON.
    read = map(parsed, items)
    return [call for item in read if isinstance(item, dict) and (call := call_of(item))]


def _split(role: Role, parts: list[Part], spelled: str | None = None) -> list[ChatMessage]:
    if not parts:
        return [ChatMessage(role=role, parts=(), spelled_role=spelled)]
    return [
        ChatMessage(role="tool" if is_result else _unless_tool(role), parts=tuple(group), spelled_role=spelled)
        for is_result, group in groupby(parts, key=lambda part: isinstance(part, ResultPart))
    ]


def _unless_tool(role: Role) -> Role:
    return "user" if role == "tool" else role


def _of_item(item: JsonObject) -> list[ChatMessage] | None:
    """An item of OpenAI Responses that has no role: a call, its output, a reasoning."""
    if not _is_item(item) or item["type"] not in _ITEMS:
        return None
    if item["type"].endswith("_output") and item.get("output") is None:
        return []  # nobody wrote down what the tool had answered
    return _split("assistant", [part_of(item)])


_ITEMS = frozenset(
    {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"}
)


def _is_item(item: JsonValue) -> bool:
    return isinstance(item, dict) and isinstance(item.get("type"), str) and "role" not in item


def _unknown(item: JsonObject) -> ChatMessage:
    return ChatMessage(role="assistant", parts=(OtherPart(kind=item["type"], value=item),))


def _joined(read: Iterable[list[ChatMessage]], pieces: Iterable[bool]) -> list[ChatMessage]:
    """All messages in order; the items that OpenAI Responses makes of one answer are one message again."""
    groups: list[list[ChatMessage]] = []
    was_piece = False
    for messages, is_piece in zip(read, pieces, strict=True):
        for message in messages:
            if (is_piece or was_piece) and groups and groups[-1][0].role == message.role == "assistant":
                groups[-1].append(message)
            else:
                groups.append([message])
        was_piece = is_piece
    return list(map(_as_one, groups))


def _as_one(group: list[ChatMessage]) -> ChatMessage:
    first, *others = group
    parts = tuple(part for message in group for part in message.parts)
    return replace(first, parts=parts) if others else first
