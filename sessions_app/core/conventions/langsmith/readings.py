"""Readings filled from the inputs and outputs of a run."""

from __future__ import annotations

import json
from dataclasses import replace

from sessions_app.core.conventions import bodies
from sessions_app.core.conventions.langsmith.values import first_argument, unwrapped_output
from sessions_app.core.conventions.wrapped_tools import Unwrapped
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.attributes import is_shallow
from sessions_app.core.spans.provider_messages import messages_of, request_of, response_of
from sessions_app.core.spans.reading import ChatMessage, Reading, TextPart


def with_request(reading: Reading, given: JsonValue) -> Reading:
    """What was asked of a model; a text alone is a prompt, and what is no request stays the span's input."""
    if isinstance(given, dict) and isinstance(given.get("prompts"), list):
        given = {"prompt": given["prompts"][:1]}
    asked = request_of({"prompt": given} if isinstance(given, str) else given)
    if asked is None:
        return replace(reading, input=reading.input if given is None else given)
    return bodies.with_request(reading, asked)


def with_response(reading: Reading, said: JsonValue) -> Reading:
    """What a model answered; words and objects of the team's own making are its text."""
    answered = response_of(said)
    if answered is None:
        text = _as_text(unwrapped_output(said))
        parts = (TextPart(text=text),) if text else None
        return replace(reading, answer=ChatMessage(role="assistant", parts=parts) if parts else None)
    return bodies.with_response(reading, answered)


def _as_text(value: JsonValue) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    return json.dumps(value, ensure_ascii=False) if value not in ({}, []) and is_shallow(value) else None


def with_answer(reading: Reading, answer: Unwrapped) -> Reading:
    """What a tool gave back, and the error if LangChain made an answer of one."""
    error = reading.error
    if answer.is_error and error is None:
        error = ErrorInfo(type=None, message=_as_text(answer.value))
    return replace(reading, result=answer.value, error=error)


def as_whole(reading: Reading, given: JsonValue, said: JsonValue, is_run: bool) -> Reading:
    """An agent's or a chain's input and output; of a run the words alone, where it has nothing else."""
    if not is_run:
        return replace(reading, input=given, output=said)
    return replace(
        reading,
        input=_words(first_argument(given), "user"),
        output=_words(unwrapped_output(said), "assistant"),
        conversation=_conversation(said) or None,
    )


def _words(value: JsonValue, role: str) -> JsonValue:
    """The text of the last message, where the value is nothing but messages and that one is of this role."""
    if isinstance(value, dict) and value.keys() == {"messages"}:
        return _words(value["messages"], role) if isinstance(value["messages"], list) else value
    last = (messages_of(value) or (None,))[-1]
    if last is None or last.role != role or not last.parts:
        return value
    texts = [part.text for part in last.parts if isinstance(part, TextPart)]
    return "\n".join(texts) if len(texts) == len(last.parts) else value


def _conversation(said: JsonValue) -> tuple[ChatMessage, ...] | None:
    """The messages in the state that a LangGraph agent ends with."""
    return messages_of(said.get("messages")) if isinstance(said, dict) else None
