"""Whole requests to a model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.provider_messages.fields import entry, first, text
from sessions_app.core.spans.provider_messages.messages import message_of, messages_of
from sessions_app.core.spans.provider_messages.parts import parts_of
from sessions_app.core.spans.provider_messages.tools import tools_of
from sessions_app.core.spans.reading import ChatMessage, TextPart, ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderRequest:
    """What was asked of a model; None where the request does not say."""

    messages: tuple[ChatMessage, ...]
    instructions: str | None = None
    """The system prompt of those that keep it apart: Anthropic, Bedrock, Google, OpenAI Responses."""
    tools: tuple[ToolDefinition, ...] | None = None
    model: str | None = None
    settings: JsonObject | None = None
    """All other fields, in snake case."""


def request_of(value: JsonValue) -> ProviderRequest | None:
    """A request object, or a bare list of messages; None when it holds no messages."""
    value = parsed(value)
    if isinstance(value, list):
        return _of_list(value)
    if not isinstance(value, dict):
        return None
    messages = next((found for name in _MESSAGES if (found := _messages(value.get(name)))), None)
    if messages is None:
        return None
    # Google and Bedrock keep settings, and Google also the system prompt and tools, one level below.
    said = {**entry(value, *_CONFIGS), **{name: each for name, each in value.items() if each is not None}}
    return ProviderRequest(
        messages=messages,
        instructions=instructions_of(first(said, *_INSTRUCTIONS)),
        tools=next((tools for name in _TOOLS if (tools := tools_of(said.get(name)))), None),
        model=text(said, *_MODELS),
        settings=settings_of(said),
    )


Spelled = tuple[str | None, str | None, list[ChatMessage] | None]


def messages_spelled(value: JsonValue) -> list[Spelled]:
    """What `request_of` makes of each message, with its role as it stands there, and who says it."""
    value = parsed(value)
    said = value if isinstance(value, dict) else {}
    listed = next((found for name in _MESSAGES if isinstance(found := said.get(name), list)), [])
    return [_spelled(item) for item in listed]


def _spelled(item: JsonValue) -> Spelled:
    fields = item if isinstance(item, dict) else {}
    return text(fields, "role"), text(fields, "name"), message_of(item)


def instructions_of(value: JsonValue) -> str | None:
    """The text of a system prompt: a text, a list of text blocks, or Google's `{"parts": []}`."""
    if isinstance(value, dict) and isinstance(value.get("parts"), list):
        value = value["parts"]
    said = [part.text for part in parts_of(value) if isinstance(part, TextPart)]
    return "\n".join(said) or None


def settings_of(said: JsonObject) -> JsonObject | None:
    """All that a request says besides its content; names in snake case, as OpenAI and OpenTelemetry write them."""
    found = {
        _snake(name): value
        for name, value in said.items()
        if value is not None and name not in _NO_SETTINGS and not name.startswith("_")
    }
    return found or None


_MESSAGES = ("messages", "input", "contents", "prompt")
_INSTRUCTIONS = ("system", "instructions", "system_instruction", "systemInstruction")
_TOOLS = ("tools", "functions", "toolConfig", "tool_config")
_MODELS = ("model", "modelId", "model_id", "model_name")
_CONFIGS = ("config", "generationConfig", "generation_config", "inferenceConfig")
_NO_SETTINGS = frozenset(
    {*_MESSAGES, *_INSTRUCTIONS, *_TOOLS, *_MODELS, *_CONFIGS}
    | {"extra_headers", "extra_query", "extra_body", "timeout", "stream_options"}
)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: f"_{found[0]}", name).lower()


def _messages(value: JsonValue) -> tuple[ChatMessage, ...] | None:
    """Messages in a request may be one text alone, or (Google) a list of texts."""
    if isinstance(value, str):
        value = [value] if value else []
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return None
    return messages_of([{"role": "user", "content": each} if isinstance(each, str) else each for each in value])


def _of_list(items: list[JsonValue]) -> ProviderRequest | None:
    """Some (Langfuse's LangChain handler) append the tools to the messages, as if they were a tool's answers."""
    tools = [item["content"] for item in items if _is_offer(item)]
    messages = messages_of([item for item in items if not _is_offer(item)])
    return None if messages is None else ProviderRequest(messages=messages, tools=tools_of(tools))


def _is_offer(item: JsonValue) -> bool:
    offer = entry(item, "content") if isinstance(item, dict) and item.get("role") == "tool" else {}
    return isinstance(offer.get("function"), dict) and "tool_call_id" not in item
