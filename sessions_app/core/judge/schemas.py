"""Tool definitions as producers write them: Pydantic AI's, and those of the providers' own APIs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sessions_app.core.judge.reading import object_of, value_of
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import ModelCall

SCHEMA_KEYS = ("parameters_json_schema", "parameters", "input_schema", "inputSchema", "schema")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSchema:
    """One definition: the tool's name and whether its schema was recorded with it."""

    name: str
    has_schema: bool


class SchemaReader:
    """Reads definitions; equal bytes, which most steps of a run share, are read once."""

    def __init__(self) -> None:
        self._read: dict[bytes, tuple[ToolSchema, ...]] = {}

    def schemas(self, call: ModelCall) -> tuple[ToolSchema, ...] | None:
        """What the model could call in this step; None when that was not captured."""
        if call.tools is None and call.parameters is None:
            return None
        found = [schema for tool in call.tools or () for schema in self._cached(tool, _definition)]
        if call.parameters is not None:
            found += self._cached(call.parameters, _parameters)
        return tuple(found)

    def _cached(self, payload: Payload, read: Callable[[Payload], list[ToolSchema]]) -> tuple[ToolSchema, ...]:
        if payload.content not in self._read:
            self._read[payload.content] = tuple(read(payload))
        return self._read[payload.content]


def _definition(payload: Payload) -> list[ToolSchema]:
    return _schemas([value_of(payload)])


def _parameters(payload: Payload) -> list[ToolSchema]:
    value = object_of(payload)
    lists = (value.get(name) for name in ("function_tools", "output_tools", "tools"))
    return [schema for items in lists if isinstance(items, list) for schema in _schemas(items)]


def _schemas(items: list[JsonValue]) -> list[ToolSchema]:
    return [_schema(item) for item in items if isinstance(item, dict)]


def _schema(item: JsonObject) -> ToolSchema:
    inner = item.get("function")
    tool = inner if isinstance(inner, dict) else item
    has_schema = any(isinstance(tool.get(key), dict) for key in SCHEMA_KEYS)
    return ToolSchema(name=str(tool.get("name")), has_schema=has_schema)
