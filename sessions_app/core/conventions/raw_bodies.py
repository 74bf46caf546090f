"""Some conventions keep a provider's request and answer as they were, beside or in place of their own attributes."""

from __future__ import annotations

from sessions_app.core.conventions.merging import merged
from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.attributes import parsed
from sessions_app.core.spans.provider_messages import request_of, response_of
from sessions_app.core.spans.reading import ChatMessage, Reading, Role, TextPart


def with_bodies(reading: Reading) -> Reading:
    """The reading of a model call with its gaps filled from the bodies; any other as it is."""
    if reading.kind != "model":
        return reading
    request = request_of(reading.input) if reading.messages is None or reading.tools is None else None
    response = response_of(reading.output)
    asked, answered = _words(reading.input, "user"), _words(reading.output, "assistant")
    bodies = Reading(
        convention=reading.convention,
        messages=request.messages if request else (None if asked is None else (asked,)),
        instructions=request.instructions if request and reading.messages is None else None,
        tools=request.tools if request else None,
        model=request.model if request else None,
        settings=request.settings if request else None,
        answer=response.answer if response else answered,
        answered_model=response.model if response else None,
        response_id=response.response_id if response else None,
        finish_reason=response.finish_reason if response else None,
        input_tokens=response.input_tokens if response else None,
        output_tokens=response.output_tokens if response else None,
    )
    return merged([reading, bodies])


def _words(value: JsonValue, role: Role) -> ChatMessage | None:
    """Plain text that went in or came out is a prompt or its answer; JSON that nobody knows is not guessed at."""
    if not isinstance(value, str) or not value.strip() or not isinstance(parsed(value), str):
        return None
    return ChatMessage(role=role, parts=(TextPart(text=value),))
