"""The run of a tool: its name, the call that it answers, arguments and result."""

from __future__ import annotations

import json

from sessions_app.core.conventions.genai.events import Told
from sessions_app.core.conventions.genai.messages import parts_in
from sessions_app.core.conventions.genai.said import Said
from sessions_app.core.conventions.told_twice import is_value_told_otherwise
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_count, as_text
from sessions_app.core.spans.provider_messages.messages import langchain_fields
from sessions_app.core.spans.provider_messages.parts import plain
from sessions_app.core.spans.reading import CallPart, Reading, ResultPart, ToolDefinition

_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args")
_RESULT = ("gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response")
"""Of the convention, of Pydantic AI's first format, of Google's ADK."""
_SCHEMA = ("gen_ai.tool.json_schema", "gen_ai.tool.parameters")
_RETRY = "pydantic_ai.tool.retry."
_Captured = list[JsonValue]
"""One value, which may be null, or none."""


def add_tool_run(reading: Reading, said: Said, told: Told | None) -> None:
    """What a tool's span says. A result that is nothing but one text block is that text."""
    wrapped = _wrapped(said)
    arguments, asked = _attribute(said, *_ARGUMENTS), _asked(said, told)
    result, answered = _attribute(said, *_RESULT), _answered(said, told)
    reading.are_arguments_told_otherwise = _are_told_otherwise(arguments, asked)
    reading.is_result_told_otherwise = _are_told_otherwise(result, answered)
    arguments, result = arguments or asked, result or answered
    if wrapped is not None:
        arguments, result = [_inputs(wrapped)], [_output(value) for value in result]
    name = reading.tool_name = said.take(as_text, "gen_ai.tool.name")
    reading.other_tool_name = next((each for each in _named(said) if each != name), None)
    reading.tools = _definition(name, said) if name else None
    reading.call_id = said.take(as_text, "gen_ai.tool.call.id") or _wrapped_id(wrapped)
    reading.other_call_id = next((each for each in _ids(said) if each != reading.call_id), None)
    reading.retry = _retry(said)
    if arguments:
        reading.arguments, reading.has_arguments = arguments[0], True
    if result:
        reading.result, reading.has_result = plain(_given(result[0])), True
        reading.is_result_quoted = any(str(said.peek(name)).startswith('"') for name in _RESULT)


def _given(result: JsonValue) -> JsonValue:
    """What a model is told of Pydantic AI's `ToolReturn`."""
    is_return = isinstance(result, dict) and result.keys() >= {"return_value", "content", "metadata"}
    return result["return_value"] if is_return and result.get("kind") == "tool-return" else result


def add_output_function(reading: Reading, said: Said) -> None:
    """What went into it, and what it made of that: not what the model gave, nor what it is told."""
    reading.is_output_function = True
    reading.name = reading.tool_name = said.take(as_text, "gen_ai.tool.name")
    reading.call_id = said.take(as_text, "gen_ai.tool.call.id")
    reading.retry = _retry(said)
    reading.input = next(iter(_attribute(said, *_ARGUMENTS)), None)
    reading.output = next(iter(_attribute(said, *_RESULT)), None)


def _are_told_otherwise(left: _Captured, right: _Captured) -> bool:
    pairs = zip(left, right, strict=False)
    return any(is_value_told_otherwise(plain(one), plain(other)) for one, other in pairs)


def _named(said: Said) -> list[str]:
    """The tool's name in the calls among the span's messages."""
    return [part.tool_name for part in parts_in(said.peek("gen_ai.input.messages")) if isinstance(part, CallPart)]


def _ids(said: Said) -> list[str]:
    """The ids of calls among the span's messages."""
    parts = [*parts_in(said.peek("gen_ai.input.messages")), *parts_in(said.peek("gen_ai.output.messages"))]
    return [part.call_id for part in parts if isinstance(part, CallPart | ResultPart) and part.call_id]


def _retry(said: Said) -> JsonObject | None:
    """What Pydantic AI says of a call that the model was asked to make again."""
    cause = said.take(as_text, f"{_RETRY}cause")
    counts = {name: said.take(as_count, f"{_RETRY}{name}") for name in ("attempt", "max_retries")}
    return None if cause is None else {"cause": cause, **counts}


def _definition(name: str, said: Said) -> tuple[ToolDefinition, ...] | None:
    """What the tool's own span says of it."""
    schema, description = said.take(_object, *_SCHEMA), said.take(as_text, "gen_ai.tool.description")
    if schema is None and description is None:
        return None
    return (ToolDefinition(name=name, description=description, parameters=schema),)


def _object(value: JsonValue) -> JsonObject | None:
    found = parsed(value)
    return found if isinstance(found, dict) else None


def _attribute(said: Said, *names: str) -> _Captured:
    found = said.take(_captured, *names)
    return found or []


def _captured(value: JsonValue) -> _Captured | None:
    return None if value is None else [value_in(value)]


def value_in(value: JsonValue) -> JsonValue:
    """The JSON value of a text. A number keeps its spelling: `19.90` stays a text, for as JSON it would be 19.9."""
    found = parsed(value)
    is_scalar = isinstance(value, str) and not isinstance(found, str | dict | list)
    return value if is_scalar and json.dumps(found) != value else found


def _asked(said: Said, told: Told | None) -> _Captured:
    """Arguments that stand in the span's messages or events."""
    calls = [part for part in parts_in(said.peek("gen_ai.input.messages")) if isinstance(part, CallPart)]
    if calls:
        said.raw("gen_ai.input.messages")
        return [calls[0].arguments]
    return [] if told is None or told.asked is None else [value_in(told.asked)]


def _answered(said: Said, told: Told | None) -> _Captured:
    """A result that stands in the span's messages or events."""
    results = [part for part in parts_in(said.peek("gen_ai.output.messages")) if isinstance(part, ResultPart)]
    if results:
        said.raw("gen_ai.output.messages")
        return [results[0].content]
    return [] if told is None or told.choice is None else [value_in(told.choice)]


# --- LangChain's callbacks -----------------------------------------------------------------------


def _wrapped(said: Said) -> JsonObject | None:
    """What LangChain's callback was given when the tool began: `{"input_str", "inputs", "metadata", "kwargs"}`."""
    found = parsed(said.peek("gen_ai.tool.call.arguments"))
    return found if isinstance(found, dict) and {"input_str", "inputs"} <= found.keys() else None


def _inputs(wrapped: JsonObject) -> JsonValue:
    return wrapped["input_str"] if wrapped["inputs"] is None else wrapped["inputs"]


def _wrapped_id(wrapped: JsonObject | None) -> str | None:
    kwargs = wrapped.get("kwargs") if wrapped else None
    return as_text(kwargs.get("tool_call_id")) if isinstance(kwargs, dict) else None


def _output(value: JsonValue) -> JsonValue:
    """The content of the tool's message in `{"output": message, "kwargs"}`; another output stays as it is."""
    if not isinstance(value, dict) or "output" not in value:
        return value
    output = value["output"]
    fields = langchain_fields(output) if isinstance(output, dict) else {}
    return fields["content"] if fields is not output and "content" in fields else output
