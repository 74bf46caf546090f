"""Readings filled from the inputs and outputs of a run."""

from __future__ import annotations

import json

from sessions_app.core.conventions import bodies
from sessions_app.core.conventions.langsmith.values import first_argument, unwrapped_output
from sessions_app.core.conventions.wrapped_tools import Unwrapped
from sessions_app.core.embedded_json import is_shallow
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.provider_messages import last_words, messages_in_state, request_of, response_of
from sessions_app.core.spans.reading import ChatMessage, Reading, TextPart


def add_request(reading: Reading, given: JsonValue) -> None:
    """What was asked of a model; a text alone is a prompt, and what is no request stays the span's input."""
    if isinstance(given, dict) and isinstance(given.get("prompts"), list):
        given = {"prompt": given["prompts"][:1]}
    asked = request_of({"prompt": given} if isinstance(given, str) else given)
    if asked is not None:
        bodies.put_request(reading, asked)
    elif given is not None:
        reading.input = given


def add_response(reading: Reading, said: JsonValue) -> None:
    """What a model answered; words and objects of the team's own making are its text."""
    answered = response_of(said)
    if answered is not None:
        bodies.put_response(reading, answered)
        return
    text = _as_text(unwrapped_output(said))
    reading.answer = ChatMessage(role="assistant", parts=(TextPart(text=text),)) if text else None


def _as_text(value: JsonValue) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    return json.dumps(value, ensure_ascii=False) if value not in ({}, []) and is_shallow(value) else None


def add_answer(reading: Reading, answer: Unwrapped) -> None:
    """What a tool gave back, whose answer it says that this is, and the error if LangChain made an answer of one."""
    reading.result, reading.other_tool_name = answer.value, answer.tool_name
    if answer.is_error and reading.error is None:
        reading.error = ErrorInfo(type=None, message=_as_text(answer.value))


def add_whole(reading: Reading, given: JsonValue, said: JsonValue, is_run: bool) -> None:
    """An agent's or a chain's input and output; of a run the words alone, where it has nothing else."""
    reading.input, reading.output = given, said
    if is_run:
        reading.input = last_words(first_argument(given), "user")
        reading.output = last_words(unwrapped_output(said), "assistant")
        reading.initial, reading.conversation = messages_in_state(given), messages_in_state(said)
