"""The few parts of Pydantic AI that read and write its messages, in one place.

The list and the single message have adapters of their own: a dump is validated as bytes, because
`validate_python` accepts nesting that can never be written again.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from sessions_app.core.payload import JsonObject, JsonValue, Payload, compact_json

_PARAMETERS: TypeAdapter[ModelRequestParameters] = TypeAdapter(ModelRequestParameters)
_DEFINITION: TypeAdapter[ToolDefinition] = TypeAdapter(ToolDefinition)
_PROMPT: TypeAdapter[UserPromptPart] = TypeAdapter(UserPromptPart)


def load_messages(payloads: list[Payload]) -> list[ModelMessage]:
    """Raises pydantic's `ValidationError` for kinds that this version does not know."""
    text = b"[" + b",".join(payload.content for payload in payloads) + b"]"
    return ModelMessagesTypeAdapter.validate_json(text)


def load_request(payload: Payload) -> ModelRequest:
    return cast(ModelRequest, load_messages([payload])[0])


def load_response(payload: Payload) -> ModelResponse:
    """A fresh object each time: the loop writes into the one that it gets."""
    return cast(ModelResponse, load_messages([payload])[0])


def dump_message(message: ModelMessage) -> JsonObject:
    value = json.loads(ModelMessagesTypeAdapter.dump_json([message]))
    return cast(JsonObject, value[0])


def dump_parameters(parameters: ModelRequestParameters) -> JsonObject:
    """Equal ones are one object, which nobody may change: most requests of a run have the same."""
    return _read_object(_PARAMETERS.dump_json(parameters))


@lru_cache(maxsize=8)
def _read_object(text: bytes) -> JsonObject:
    return cast(JsonObject, json.loads(text))


def load_parameters(value: JsonValue) -> ModelRequestParameters:
    return _PARAMETERS.validate_json(compact_json(value))


def load_definition(value: JsonObject) -> ToolDefinition:
    return _DEFINITION.validate_json(compact_json(value))


def load_prompt(content: JsonValue) -> Any:
    """The content of a user prompt: a text, or a list of texts, files and links."""
    return _PROMPT.validate_json(compact_json({"content": content, "part_kind": "user-prompt"})).content
