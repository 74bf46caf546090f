"""Tools as they are offered to a model."""

from __future__ import annotations

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.shared_values import once_each
from sessions_app.core.spans.provider_messages.fields import entries, entry, first, text
from sessions_app.core.spans.reading import ToolDefinition


@once_each
def tools_of(value: JsonValue) -> tuple[ToolDefinition, ...] | None:
    """A list of tool definitions, or an object that holds one as `tools`; None when no item is a tool.

    Items may be JSON inside text. A tool that the provider runs itself goes by its type.
    """
    value = parsed(value)
    if isinstance(value, dict):
        value = first(value, "tools", "functionDeclarations", "function_declarations") or [value]
    items = value if isinstance(value, list) else []
    found = [tool for item in items for each in _spread(parsed(item)) if (tool := _tool(each))]
    return tuple(found) or None


def _spread(item: JsonValue) -> list[JsonValue]:
    """Google lists functions inside of one tool."""
    if not isinstance(item, dict):
        return []
    return entries(item, "functionDeclarations", "function_declarations") or [item]


def _tool(item: JsonValue) -> ToolDefinition | None:
    if not isinstance(item, dict):
        return None
    said = entry(item, "function", "toolSpec", "custom") or item
    name = text(said, "name") or _built_in(item)
    if name is None:
        return None
    return ToolDefinition(
        name=name, description=text(said, "description"), parameters=_schema(said), beside=fields_beside(item, said)
    )


def fields_beside(item: JsonObject, said: JsonObject) -> JsonObject:
    """Of a definition, which may stand inside of an item, all that no other field of a reading holds."""
    own = {} if item is said else {name: value for name, value in item.items() if value is not said}
    return {name: value for name, value in (own | said).items() if name not in _NOT_BESIDE}


def _built_in(item: JsonObject) -> str | None:
    kind = text(item, "type")
    return None if kind in ("function", "custom", "object", "text") else kind


def _schema(said: JsonObject) -> JsonObject | None:
    schema = parsed(first(said, *_SCHEMAS))
    if not isinstance(schema, dict):
        return None
    inner = entry(schema, "json", "jsonSchema")
    return inner or schema


_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
_NOT_BESIDE = frozenset({"name", "description", "cache_control", *_SCHEMAS})
"""Where a prompt is cached is no part of a tool."""
