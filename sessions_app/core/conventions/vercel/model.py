"""Calls of a model, and the runs around them, as the Vercel AI SDK writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import Read
from sessions_app.core.spans.provider_messages import messages_of, request_of, tools_of
from sessions_app.core.spans.provider_messages.parts import call_of
from sessions_app.core.spans.provider_messages.usage import usage_of
from sessions_app.core.spans.reading import CallPart, ChatMessage, Part, Reading, TextPart, ThinkingPart
from sessions_app.core.spans.span import Span

Found = TypeVar("Found")
CONVENTION = "vercel-ai-sdk"
_SETTINGS = "ai.settings."
_RENAMED = {"max_output_tokens": "max_tokens"}
_TEXT = ("ai.response.text", "ai.result.text")
_OBJECT = ("ai.response.object", "ai.result.object")
_CALLS = ("ai.response.toolCalls", "ai.result.toolCalls")
"""`ai.result.*`: version 3."""


def model_reading(said: Read, span: Span) -> Reading:
    """One call of a model."""
    return Reading(
        convention=CONVENTION,
        messages=_understood(said, "ai.prompt.messages", messages_of),
        answer=_answer(said),
        tools=_understood(said, "ai.prompt.tools", tools_of),
        model=said.text("ai.model.id"),
        answered_model=said.text("ai.response.model"),
        provider=_provider(said),
        response_id=said.text("ai.response.id"),
        settings=_settings(said),
        finish_reason=said.text("ai.response.finishReason", "ai.finishReason"),
        input_tokens=_input_tokens(said),
        output_tokens=said.count("ai.usage.outputTokens", "ai.usage.completionTokens"),
        first_token_ns=_first_token(span),
    )


def agent_reading(said: Read, span: Span) -> Reading:
    """A whole run. Its prompt is `{"system", "messages"}` or `{"system", "prompt"}`."""
    prompt = said.json("ai.prompt")
    request = request_of(prompt)
    newest = _words(request.messages[-1].parts) if request else None
    return Reading(
        convention=CONVENTION,
        instructions=request.instructions if request else None,
        model=said.text("ai.model.id"),
        provider=_provider(said),
        settings=_settings(said),
        input=prompt if newest is None else newest,
        initial=request.messages if request else None,
        output=said.text(*_TEXT) or said.json(*_OBJECT),
        finish_reason=said.text("ai.response.finishReason", "ai.finishReason"),
    )


def _understood(said: Read, name: str, read: Callable[[JsonValue], Found | None]) -> Found | None:
    found = read(said.json(name))
    if found is None:
        said.used.discard(name)
    return found


def _words(parts: Iterable[Part]) -> str | None:
    """The words of a message that is nothing but words."""
    words = [part.text for part in parts if isinstance(part, TextPart)]
    return "\n".join(words) if words and len(words) == len(list(parts)) else None


def _answer(said: Read) -> ChatMessage | None:
    thought, words = said.text("ai.response.reasoning"), said.text(*_TEXT) or said.text(*_OBJECT)
    parts: list[Part] = [ThinkingPart(text=thought)] if thought else []
    parts += [TextPart(text=words)] if words else []
    parts += _calls(said)
    return ChatMessage(role="assistant", parts=tuple(parts)) if parts else None


def _calls(said: Read) -> list[CallPart]:
    items = said.list(*_CALLS)
    if items is None:
        said.used.difference_update(_CALLS)
    return [call for item in items or () if isinstance(item, dict) and (call := call_of(item))]


def _provider(said: Read) -> str | None:
    """`openai.chat` is the provider and which of its interfaces."""
    return (said.text("ai.model.provider") or "").partition(".")[0] or None


def _settings(said: Read) -> JsonObject | None:
    found: JsonObject = {}
    for name in said.names():
        if not name.startswith(_SETTINGS):
            continue
        key = _snake(name.removeprefix(_SETTINGS))
        if "." not in key and (value := said.raw(name)) is not None:
            found[_RENAMED.get(key, key)] = value
    choice = said.json("ai.prompt.toolChoice")
    # `{"type": "auto"}` is what the others write as `auto`; a tool's name stands beside the type.
    choice = choice["type"] if isinstance(choice, dict) and set(choice) == {"type"} else choice
    return {**found, **({} if choice is None else {"tool_choice": choice})} or None


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: f"_{found[0]}", name).lower()


def _input_tokens(said: Read) -> int | None:
    """As the provider itself counted, where it is quoted: version 5 leaves out what Anthropic's cache gave."""
    quoted = [usage for usage in _quoted_usages(said.json("ai.response.providerMetadata")) if usage is not None]
    counted = said.count("ai.usage.inputTokens", "ai.usage.promptTokens")
    # The same numbers once more, or parts of them.
    said.under("ai.usage.")
    return max([counted, *quoted]) if counted is not None else None


def _quoted_usages(metadata: JsonValue) -> Iterable[int | None]:
    for each in metadata.values() if isinstance(metadata, dict) else ():
        if isinstance(each, dict) and isinstance(each.get("usage"), dict):
            yield usage_of(each["usage"])[0]


def _first_token(span: Span) -> int | None:
    return next((event.time_ns for event in span.events if event.name == "ai.stream.firstChunk"), None)
