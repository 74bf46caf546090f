"""Whole answers of a model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.provider_messages.fields import entries, entry, text
from sessions_app.core.spans.provider_messages.messages import langchain_fields, message_of, messages_of
from sessions_app.core.spans.provider_messages.parts import call_of
from sessions_app.core.spans.provider_messages.streams import is_told_otherwise, merged
from sessions_app.core.spans.provider_messages.usage import usage_of
from sessions_app.core.spans.reading import ChatMessage, TextPart


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderResponse:
    """What a model answered; None where the response does not say."""

    answer: ChatMessage
    model: str | None = None
    response_id: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    """With those that came from a cache."""
    output_tokens: int | None = None
    is_told_otherwise: bool = False
    """Whether a stream, or what LangChain made of it, holds it twice, and not alike."""


def response_of(value: JsonValue) -> ProviderResponse | None:
    """A response object, the chunks of a stream, an answer message, or what LangChain made of one.

    None when it holds no answer. Of several choices, candidates or generations it is the first.
    """
    value = parsed(value)
    if isinstance(value, list):
        whole = merged(value)
        found = response_of(whole) if whole else _last_answer(value) or _of_calls(value)
        return replace(found, is_told_otherwise=True) if found is not None and is_told_otherwise(value) else found
    if not isinstance(value, dict):
        return None
    answers = (
        read(value) for read in (_of_choices, _of_output, _of_candidates, _of_generations, _of_message, _of_state)
    )
    return next((found for found in answers if found), None)


def is_response(value: JsonValue) -> bool:
    """Whether it is a response of a provider, or one in pieces, also where no answer is in it."""
    pieces = [parsed(each) for each in value] if isinstance(value, list) else [value]
    return any(map(_is_of_provider, pieces))


def _is_of_provider(said: JsonValue) -> bool:
    if not isinstance(said, dict):
        return False
    is_of_anthropic = said.get("type") == "message_start" or (said.get("type") == "message" and "stop_reason" in said)
    has_answers = any(isinstance(said.get(name), list) for name in ("choices", "output", "candidates"))
    return is_of_anthropic or has_answers or said.get("object") in _OBJECTS


_OBJECTS = ("chat.completion", "chat.completion.chunk", "response")


def _of_choices(said: JsonObject) -> ProviderResponse | None:
    """OpenAI chat completions."""
    choice = _first_object(said, "choices")
    message = entry(choice, "message") or {"content": choice.get("text")}
    return _response(_answer_of_model(message) if choice else None, said, choice)


def _answer_of_model(message: JsonObject) -> ChatMessage | None:
    """Of a message that can be nothing else, whatever it says of who speaks."""
    answer = _answer([{**message, "role": "assistant"}])
    return answer and replace(answer, spelled_role=text(message, "role") or answer.spelled_role)


def _of_output(said: JsonObject) -> ProviderResponse | None:
    """OpenAI Responses: a list of items. Bedrock Converse: an object with a message."""
    output = said.get("output")
    if isinstance(output, dict):
        return _response(_answer([entry(output, "message")]), said, said) or _of_message(output)
    return _response(_answer(entries(said, "output")), said, {**said, **_end(said)})


def _end(said: JsonObject) -> JsonObject:
    """The Responses API gives a reason for answers that were cut short alone; of others the status says how they
    ended."""
    reason = text(entry(said, "incomplete_details"), "reason") or text(said, "status")
    return {"finish_reason": reason} if reason and not text(said, *_REASONS) else {}


def _of_candidates(said: JsonObject) -> ProviderResponse | None:
    """Google generateContent; ADK keeps the one candidate alone."""
    candidate = _first_object(said, "candidates") or (said if "parts" in entry(said, "content") else {})
    content = {**entry(candidate, "content"), "role": "assistant"}
    return _response(_answer([content]) if candidate else None, said, candidate)


def _of_generations(said: JsonObject) -> ProviderResponse | None:
    """LangChain's LLMResult: `{"generations": [[{"text", "message", "generation_info"}]], "llm_output": {}}`."""
    batch = entries(said, "generations")
    inner = batch[0] if batch and isinstance(batch[0], list) else batch
    generation = inner[0] if inner and isinstance(inner[0], dict) else {}
    message = entry(generation, "message") or _plain_text(generation)
    found = _of_message(message)
    if found is None:
        return None
    whole = _filled(found, _response(found.answer, entry(said, "llm_output"), entry(generation, "generation_info")))
    return replace(whole, is_told_otherwise=_are_other_words(text(generation, "text"), found.answer))


def _are_other_words(words: str | None, answer: ChatMessage) -> bool:
    """Those beside a message, which older versions take from its first part alone."""
    texts = [part.text for part in answer.parts if isinstance(part, TextPart)]
    return bool(words and texts) and words not in ("".join(texts), texts[0])


def _plain_text(generation: JsonObject) -> JsonObject:
    words = text(generation, "text")
    return {"role": "assistant", "content": words} if words else {}


def _of_message(said: JsonObject) -> ProviderResponse | None:
    """An answer that is a message itself (Anthropic, LangChain), or holds one as `message` (Ollama)."""
    fields = langchain_fields(entry(said, "message") or said)
    metadata = entry(fields, "response_metadata")
    outer = {**metadata, **said, **fields, "usage": _usage(fields) or _usage(metadata) or _usage(said)}
    # LangChain numbers its messages itself; the provider's id is in the metadata.
    outer["id"] = text(outer, "id") if "role" in fields else text(metadata, "id")
    is_of_model = text(said, "type") == "message" and "stop_reason" in said  # as Anthropic answers
    return _response(_answer_of_model(fields) if is_of_model else _answer([fields]), outer, outer)


def _of_state(said: JsonObject) -> ProviderResponse | None:
    """The state that a LangGraph agent ends with: its last answer."""
    return _last_answer(entries(said, "messages"))


def _last_answer(items: list[JsonValue]) -> ProviderResponse | None:
    answers = [message for message in messages_of(items) or () if message.role == "assistant"]
    if not answers:
        return None
    facts = (_of_message(item) for item in reversed(items) if isinstance(item, dict))
    found = next((each for each in facts if each), None)
    return replace(found, answer=answers[-1]) if found else ProviderResponse(answer=answers[-1])


def _of_calls(items: list[JsonValue]) -> ProviderResponse | None:
    """The Vercel AI SDK's answer without words: `[{"toolCallId", "toolName", "input"}]`."""
    calls = [call_of(item) for item in items if isinstance(item, dict) and "toolCallId" in item]
    parts = tuple(call for call in calls if call is not None)
    return ProviderResponse(answer=ChatMessage(role="assistant", parts=parts)) if parts else None


def _answer(items: list[JsonValue]) -> ChatMessage | None:
    """All that an assistant says here, as one message."""
    read = [message for item in items for message in message_of(item) or ()] if len(items) == 1 else messages_of(items)
    said = [message for message in read or () if message.role == "assistant"]
    if not said:
        return None
    return replace(said[0], parts=tuple(part for message in said for part in message.parts))


def _response(answer: ChatMessage | None, said: JsonObject, choice: JsonObject) -> ProviderResponse | None:
    if answer is None:
        return None
    input_tokens, output_tokens = usage_of(_usage(said))
    return ProviderResponse(
        answer=answer,
        model=text(said, *_MODELS),
        response_id=text(said, "id", "responseId", "response_id"),
        finish_reason=text(choice, *_REASONS),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )


_MODELS = ("model", "modelVersion", "model_version", "model_name", "model_id")
_REASONS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
_USAGES = ("usage", "usageMetadata", "usage_metadata", "token_usage")


def _usage(said: JsonObject) -> JsonObject:
    return entry(said, *_USAGES) or {name: said[name] for name in ("prompt_eval_count", "eval_count") if name in said}


def tokens_of_event(event: JsonValue) -> tuple[int | None, int | None]:
    """What one event of a stream counts of the input and of the output."""
    value = parsed(event)
    said = value if isinstance(value, dict) else {}
    return usage_of(_usage(said) or _usage(entry(said, "message", "response")))


def _filled(found: ProviderResponse, other: ProviderResponse | None) -> ProviderResponse:
    """What the first does not say, the second may."""
    if other is None:
        return found
    gaps = {name: getattr(other, name) for name in _FACTS if getattr(found, name) is None}
    return replace(found, **gaps)


_FACTS = ("model", "response_id", "finish_reason", "input_tokens", "output_tokens")


def _first_object(said: JsonObject, name: str) -> JsonObject:
    items = entries(said, name)
    return items[0] if items and isinstance(items[0], dict) else {}
