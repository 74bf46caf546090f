"""Whether a recorded output can be what the team's type made of what the model answered with.

Validation may add defaults and turn 1 into 1.0; it takes nothing away and changes no text. The arguments were
compared exactly, as part of the messages. A type that is no object stands in an object of one key, and one of several
types beside its name (Pydantic AI, `_output.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.matching import same_value
from sessions_app.core.run import Run

_CHOICE = "result"
"""The key around a value and the name of its type: `{"result": {"kind", "data"}}`."""


def can_be_made_of(run: Run, output: Payload, answered: Payload) -> bool:
    """`output` is the recorded one, `answered` what the replay's loop ended with."""
    said, made = output.parsed, answered.parsed
    if same_value(said, made):
        return True
    inside = list(_inside(run, made))
    return any(same_value(said, value) for value in inside) or (
        output.is_json and any(_came_from(said, value) for value in (made, *inside))
    )


def _inside(run: Run, answered: JsonValue) -> Iterator[JsonValue]:
    """What stands in the object that the library put around the team's type."""
    if not isinstance(answered, dict) or len(answered) != 1:
        return
    ((key, value),) = answered.items()
    if key not in set(_keys_around(run)):
        return
    yield value["data"] if key == _CHOICE and isinstance(value, dict) and value.keys() == {"kind", "data"} else value


def _keys_around(run: Run) -> Iterator[str]:
    """As the requests told the model."""
    for _, call in run.model_calls[-1:]:
        parameters = call.parameters.value if call.parameters else None
        if isinstance(parameters, dict):
            yield from _of_tools(parameters)
            yield from _of_object(parameters)


def _of_tools(parameters: JsonObject) -> Iterator[str]:
    for tool in parameters.get("output_tools") or []:
        key = tool.get("outer_typed_dict_key") if isinstance(tool, dict) else None
        if isinstance(key, str):
            yield key


def _of_object(parameters: JsonObject) -> Iterator[str]:
    said = parameters.get("output_object")
    schema = said.get("json_schema") if isinstance(said, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(properties, dict) and len(properties) == 1:
        yield from properties


def _came_from(output: JsonValue, arguments: JsonValue) -> bool:
    if isinstance(arguments, dict):
        return isinstance(output, dict) and all(
            key in output and _came_from(output[key], value) for key, value in arguments.items()
        )
    if isinstance(arguments, list):
        return isinstance(output, list) and len(output) == len(arguments) and all(map(_came_from, output, arguments))
    return bool(output == arguments)
