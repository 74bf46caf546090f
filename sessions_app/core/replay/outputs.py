"""What the loop makes of a model's last answer, by the output schema that went with the request.

The team's type is not there in a replay, but its JSON schema was recorded, and what validation does by it is known:
numbers become what the schema calls them, defaults are filled in, keys stand in its order and unknown ones are left
out (Pydantic's defaults). A value that is no object stands in an object of one key, and one of several types beside
its name (Pydantic AI, `_output.py`). Whatever else a type or a check does is not known, and then the outcomes differ.
"""

from __future__ import annotations

from typing import Any

from sessions_app.core.compare.strict import same_json
from sessions_app.core.payload import JsonObject, JsonValue, Payload

_CHOICE = "result"
"""The key around a value and the name of its type: `{"result": {"kind", "data"}}`."""
_DEEPEST = 100


def same_output(recorded: Payload, replayed: Payload) -> bool:
    """To the letter where both are texts, else as JSON, with the spelling of numbers."""
    if recorded.is_text and replayed.is_text:
        return recorded.content == replayed.content
    return same_json(recorded.spelled, replayed.spelled)


def hides_output_tools(parameters: JsonObject) -> bool:
    """Whether code took them from the request, which says all the same that the output comes by a tool."""
    return parameters.get("output_mode") == "tool" and parameters.get("output_tools") == []


def typed_output(
    parameters: JsonObject, tool_name: str | None, answered: JsonValue, *, is_unchecked: bool = False
) -> JsonValue:
    """`answered` are the arguments of the output tool of this name, or without one what the answer's text spells.

    Without a recorded schema it stays as it is. So it does where the schema is shown to the model alone and nothing is
    checked by it, as with a `StructuredDict`.
    """
    schema, key = _of_tool(parameters, tool_name) if tool_name else _of_object(parameters)
    if schema is None:
        return answered
    return _inside(answered if is_unchecked else _conform(answered, schema, schema, 0), key)


def _inside(made: JsonValue, key: str | None) -> JsonValue:
    if key is None or not isinstance(made, dict) or made.keys() != {key}:
        return made
    inside = made[key]
    is_choice = key == _CHOICE and isinstance(inside, dict) and inside.keys() == {"kind", "data"}
    return inside["data"] if is_choice else inside


def _of_tool(parameters: JsonObject, name: str) -> tuple[JsonObject | None, str | None]:
    for tool in parameters.get("output_tools") or []:
        if isinstance(tool, dict) and tool.get("name") == name:
            return _object(tool.get("parameters_json_schema")), tool.get("outer_typed_dict_key")
    return None, None


def _of_object(parameters: JsonObject) -> tuple[JsonObject | None, str | None]:
    """The library tells of no key around; it is the only property of an object whose name is none of a type."""
    said = parameters.get("output_object")
    schema = _object(said.get("json_schema")) if isinstance(said, dict) else None
    properties = schema.get("properties") if schema else None
    only = next(iter(properties)) if isinstance(properties, dict) and len(properties) == 1 else None
    return schema, only if only in ("response", _CHOICE) else None


def _object(value: JsonValue) -> JsonObject | None:
    return value if isinstance(value, dict) else None


# --- by the schema -----------------------------------------------------------------------------


def _conform(value: JsonValue, schema: Any, root: JsonObject, depth: int) -> JsonValue:
    schema = _resolved(value, schema, root)
    if depth > _DEEPEST or schema is None:
        return value
    if isinstance(value, dict):
        return _conform_object(value, schema, root, depth)
    if isinstance(value, list):
        return [_conform(item, schema.get("items"), root, depth + 1) for item in value]
    return _conform_number(value, schema.get("type"))


def _conform_object(value: JsonObject, schema: JsonObject, root: JsonObject, depth: int) -> JsonObject:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    if not isinstance(properties, dict):
        return {key: _conform(item, others, root, depth + 1) for key, item in value.items()}
    defaults = {
        key: each["default"] for key, each in properties.items() if isinstance(each, dict) and "default" in each
    }
    whole = {**defaults, **value}
    made = {key: _conform(whole[key], each, root, depth + 1) for key, each in properties.items() if key in whole}
    rest = {key: item for key, item in value.items() if key not in properties} if others else {}
    return {**made, **{key: _conform(item, others, root, depth + 1) for key, item in rest.items()}}


def _defaults(properties: JsonObject) -> JsonObject:
    return {key: each["default"] for key, each in properties.items() if isinstance(each, dict) and "default" in each}


def _conform_number(value: JsonValue, kind: JsonValue) -> JsonValue:
    if kind == "number" and type(value) is int:
        return float(value)
    return int(value) if kind == "integer" and isinstance(value, float) and value.is_integer() else value


def _resolved(value: JsonValue, schema: Any, root: JsonObject) -> JsonObject | None:
    """The schema itself in the place of a reference or of a choice."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict):
            return None
        if isinstance(schema.get("$ref"), str):
            schema = _definition(schema["$ref"], root)
        elif choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            schema = next((each for each in choices if _fits(value, _resolved(value, each, root))), None)
        else:
            return schema
    return None


def _definition(reference: str, root: JsonObject) -> Any:
    found: Any = root
    for name in reference.removeprefix("#/").split("/"):
        found = found.get(name) if isinstance(found, dict) else None
    return found


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def _fits(value: JsonValue, schema: JsonObject | None) -> bool:
    """As far as it tells one choice from another."""
    if schema is None:
        return False
    kinds = _TYPES.get(str(schema.get("type")), (object,))
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds and object not in kinds):
        return False
    if not isinstance(value, dict):
        return True
    properties = schema.get("properties") or {}
    constants = {k: each["const"] for k, each in properties.items() if isinstance(each, dict) and "const" in each}
    return all(str(key) in value for key in schema.get("required") or []) and all(
        key in value and value[key] == constant for key, constant in constants.items()
    )
