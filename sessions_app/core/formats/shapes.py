"""What the fields of a message and of a request's parameters must be, where anybody looks at them.

One table for all readers; fields that are not in it may hold anything. Pydantic AI writes these fields (its
`ModelMessage` and `ModelRequestParameters`), the importers and recorders write them too.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from sessions_app.core.errors import RecordError


class _Retry(msgspec.Struct):
    cause: str | None = None


class _Part(msgspec.Struct):
    part_kind: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    retry: _Retry | None = None


class _Message(msgspec.Struct):
    kind: str | None = None
    parts: list[_Part] | None = None
    instructions: str | None = None


class _Tool(msgspec.Struct):
    name: str
    kind: str | None = None
    outer_typed_dict_key: str | None = None


class _InstructionPart(msgspec.Struct):
    content: str | None = None


class _OutputObject(msgspec.Struct):
    name: str | None = None
    json_schema: dict[str, Any] | None = None


class _Parameters(msgspec.Struct):
    function_tools: list[_Tool] | None = None
    output_tools: list[_Tool] | None = None
    output_mode: str | None = None
    output_object: _OutputObject | None = None
    instruction_parts: list[_InstructionPart] | None = None


Shape = msgspec.json.Decoder[Any]
MESSAGE: Shape = msgspec.json.Decoder(_Message)
PARAMETERS: Shape = msgspec.json.Decoder(_Parameters)
TOOL: Shape = msgspec.json.Decoder(_Tool)
_SAID = re.compile(r"Expected `([^`]*)`, got `([^`]*)`(?: - at `\$([^`]*)`)?")
_WORDS = {"str": "a text", "array": "a list", "object": "an object"}


def check_shape(content: bytes, shape: Shape, path: str) -> None:
    """Raises `RecordError` naming the field that holds something else."""
    try:
        shape.decode(content)
    except msgspec.DecodeError as error:
        raise _in_words(str(error), path) from None


def _in_words(said: str, path: str) -> RecordError:
    found = _SAID.match(said)
    if found is None:
        return RecordError(f"{path}: {said}.", field=path)
    field = path + (found[3] or "")
    allowed = " or ".join(_WORDS.get(name, name) for name in found[1].split(" | "))
    return RecordError(f"{field} must be {allowed}.", field=field)
