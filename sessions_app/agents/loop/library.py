"""The few parts of Pydantic AI that read and write its messages, in one place.

The list and the single message have adapters of their own: a dump is validated as bytes, because
`validate_python` accepts nesting that can never be written again.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    BinaryImage,
    FilePart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_core import PydanticSerializationError, to_jsonable_python

from sessions_app.core.embedded_json import without_half_pairs
from sessions_app.core.payload import JsonObject, JsonValue, Payload, compact_json
from sessions_app.core.replay.matching import FILLED_BY_LIBRARY

_PARAMETERS: TypeAdapter[ModelRequestParameters] = TypeAdapter(ModelRequestParameters)
_DEFINITION: TypeAdapter[ToolDefinition] = TypeAdapter(ToolDefinition)
_PROMPT: TypeAdapter[UserPromptPart] = TypeAdapter(UserPromptPart)


def load_messages(payloads: list[Payload]) -> list[ModelMessage]:
    """Raises pydantic's `ValidationError` for kinds that this version does not know."""
    text = b"[" + b",".join(map(_captured, payloads)) + b"]"
    return ModelMessagesTypeAdapter.validate_json(text)


_NULL = re.compile(
    rb'"(%s|[a-z0-9_]*tokens|unmeasured_requests|audio_seconds)"\s*:\s*null' % "|".join(FILLED_BY_LIBRARY).encode()
)


def _captured(payload: Payload) -> bytes:
    """Null means "not captured" and is left out; what a message holds that is no field of its own stays as it is."""
    if not _NULL.search(payload.content) or not isinstance(payload.value, dict):
        return payload.content
    message = _without_nulls(payload.value)
    parts = message.get("parts")
    if isinstance(parts, list):
        message["parts"] = [_without_nulls(part) if isinstance(part, dict) else part for part in parts]
    return compact_json(message)


def _without_nulls(holder: JsonObject) -> JsonObject:
    kept = {name: value for name, value in holder.items() if value is not None or name not in FILLED_BY_LIBRARY}
    usage = kept.get("usage")
    if isinstance(usage, dict):
        kept["usage"] = {name: value for name, value in usage.items() if value is not None}
    return kept


def load_request(payload: Payload) -> ModelRequest:
    return cast(ModelRequest, load_messages([payload])[0])


def load_response(payload: Payload) -> ModelResponse:
    """A fresh object each time: the loop writes into the one that it gets."""
    return cast(ModelResponse, load_messages([payload])[0])


def dump_message(message: ModelMessage) -> JsonObject:
    """With what tools gave as the model is told it: fields by their aliases, and what JSON does not know as a text."""
    try:
        return cast(JsonObject, json.loads(ModelMessagesTypeAdapter.dump_json([message], by_alias=True))[0])
    except PydanticSerializationError:
        found = to_jsonable_python(message, serialize_unknown=True, inf_nan_mode="null")
        return cast(JsonObject, without_half_pairs(found))


def dump_output(output: Any) -> Any:
    """An image as messages hold it, numbers that JSON does not know as texts, as recorders write them; anything else as
    it came."""
    if not isinstance(output, BinaryImage):
        return _with_finite_numbers(output)
    return dump_message(ModelResponse([FilePart(output)]))["parts"][0]["content"]


def _with_finite_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_finite_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_finite_numbers(item) for item in value]
    is_odd = isinstance(value, float) and not math.isfinite(value)
    return json.dumps(value) if is_odd else value


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
