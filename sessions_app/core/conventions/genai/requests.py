"""What the GenAI convention says of a request to a model and its answer, besides the messages."""

from __future__ import annotations

from sessions_app.core.conventions import told_twice
from sessions_app.core.conventions.genai.said import Said
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.shared_values import once_each
from sessions_app.core.spans.attributes import as_count, as_number, as_text
from sessions_app.core.spans.provider_messages import tools_of
from sessions_app.core.spans.reading import ToolDefinition
from sessions_app.core.spans.span import Span

_PARAMETERS = "model_request_parameters"
_NO_SETTINGS = frozenset({"model"})
_BARE = (
    *("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "stop"),
    *("presence_penalty", "frequency_penalty"),
)
"""Settings that a span of a model call may carry under the names of the call's own arguments."""

_FIRST_CHUNK = ("gen_ai.response.time_to_first_chunk", "gen_ai.client.operation.time_to_first_chunk")
_CHUNK = "gen_ai.content.completion.chunk"
"""An event for each piece of a streamed answer."""
_LONGEST = 1e9
"""Seconds; three decades are no time that a model took."""
_FIRST_TOKEN = ("gen_ai.server.time_to_first_token", "gen_ai.response.time_to_first_token")


def settings_of(said: Said) -> JsonObject | None:
    """All `gen_ai.request.*` and `gen_ai.<provider>.request.*` without their prefix, and how output was asked for."""
    found = {name: value for name in _BARE if (value := said.take(_setting, name)) is not None}
    for name in list(said.names()):
        head, _, key = name.partition(".request.")
        if key and key not in _NO_SETTINGS and (head == "openai" or f"{head}.".startswith("gen_ai.")):
            value = said.take(_setting, name)
            found |= {} if value is None else {key: value}
    return (found | _output_settings(said)) or None


def model_of(said: Said) -> str | None:
    """The model that was asked for; a bare `model` is the call's own argument and the surest."""
    return said.take(_plain_text, "model", "gen_ai.request.model", "model_name")


def tools_offered(said: Said) -> tuple[ToolDefinition, ...] | None:
    """With their schemas, else by their names alone."""
    defined = said.take(tools_of, "gen_ai.tool.definitions", "tools")
    registered = said.take(_registered, _PARAMETERS)
    named = said.take(_names, "gen_ai.agent.tools")
    return defined or registered or named


def are_tools_told_otherwise(said: Said) -> bool:
    """Whether two attributes define one tool otherwise, or Pydantic AI's own, which has all of an agent's tools, lacks
    one that the other defines."""
    defined, registered = tools_of(said.peek("gen_ai.tool.definitions")), said.take(_registered, _PARAMETERS)
    has_all = _object(said.peek(_PARAMETERS)) is not None
    is_less = has_all and told_twice.lacks_tools(registered, defined)
    return is_less or told_twice.are_tools_told_otherwise(defined, registered)


def instructions_of(said: Said) -> str | None:
    """Those in Pydantic AI's request parameters; none where they are not all that the system prompt holds."""
    asked = _object(said.peek(_PARAMETERS)) or {}
    parts = asked.get("instruction_parts")
    if not isinstance(parts, list) or asked.get("instruction_visibility") or asked.get("output_mode") == "prompted":
        return None
    texts = [text for part in parts if isinstance(part, dict) and (text := as_text(part.get("content"))) is not None]
    return "\n\n".join(texts).strip() or None if len(texts) == len(parts) else None


def finish_reason_of(said: Said) -> str | None:
    return said.take(_first_text, "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason")


def choice_count(said: Said) -> int | None:
    """How many alternative answers were asked for."""
    return said.take(count_of, "gen_ai.request.choice.count")


def usage_of(said: Said) -> tuple[int | None, int | None]:
    """Tokens that went in, with those from a cache, and tokens that came out.

    The convention counts cached tokens with the input; where there are more of them than input they were not.
    """
    count = said.take(count_of, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    output = said.take(count_of, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
    cached = _cached(said)
    return count + cached if count is not None and cached > count else count, output


def first_token_ns(said: Said, span: Span) -> int | None:
    """When the first piece of a streamed answer came; None when that lies outside of the span."""
    seconds = _seconds_to_first(said)
    if not span.start_ns or seconds is None:
        return next((event.time_ns for event in span.events if event.name == _CHUNK), None)
    moment = span.start_ns + round(seconds * 1e9)
    return None if span.end_ns and moment > span.end_ns else moment


def _seconds_to_first(said: Said) -> float | None:
    """Times to the first chunk are seconds. So are times to the first token with a fraction; whole ones are ms."""
    seconds, token = said.take(_positive, *_FIRST_CHUNK), said.take(_positive, *_FIRST_TOKEN)
    if seconds is None:
        seconds = token / 1000 if isinstance(token, int) else token
    return seconds if seconds is not None and seconds < _LONGEST else None


def _setting(value: JsonValue) -> JsonValue:
    return None if value == "" else parsed(value)


def _plain_text(value: JsonValue) -> str | None:
    """A text, also where it was written as JSON."""
    return as_text(parsed(value)) or as_text(value)


def count_of(value: JsonValue) -> int | None:
    """A whole number from 0 that fits into 64 bits, also as text."""
    number = _number(value)
    return None if number is None else as_count(number)


def _number(value: JsonValue) -> float | int | None:
    """A number that fits into 64 bits."""
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return None
    return None if isinstance(value, str) and len(value) > 20 else as_number(value)


def _positive(value: JsonValue) -> float | int | None:
    number = _number(value)
    return number if number is not None and number > 0 else None


def _cached(said: Said) -> int:
    names = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")
    created = ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens")
    return sum(next((n for name in each if (n := count_of(said.peek(name)))), 0) for each in (names, created))


def _first_text(value: JsonValue) -> str | None:
    found = parsed(value)
    if isinstance(found, list):
        return next((reason for each in found if (reason := as_text(each))), None)
    return as_text(found)


def _names(value: JsonValue) -> tuple[ToolDefinition, ...] | None:
    found = parsed(value)
    names = [name for each in found if (name := as_text(each))] if isinstance(found, list) else []
    return tuple(ToolDefinition(name=name) for name in names) or None


@once_each
def _registered(value: JsonValue) -> tuple[ToolDefinition, ...] | None:
    """Pydantic AI's request parameters: tools of the agent, and tools that stand for kinds of output."""
    said = parsed(value)
    lists = [said.get(name) for name in ("function_tools", "output_tools")] if isinstance(said, dict) else []
    return tools_of([tool for each in lists if isinstance(each, list) for tool in each])


def _output_settings(said: Said) -> JsonObject:
    """How a structured output was asked for, and its schema."""
    asked = said.take(_object, _PARAMETERS) or {}
    mode, output = as_text(asked.get("output_mode")), asked.get("output_object")
    schema = output.get("json_schema") if isinstance(output, dict) else None
    found = {
        "output_mode": None if mode == "text" else mode,
        "output_schema": schema,
        "output_tools": _names_in(asked.get("output_tools")) or None,
        "output_keys": _keys_in(asked.get("output_tools")) or None,
        "allow_text_output": _bool(asked.get("allow_text_output")),
    }
    return {name: value for name, value in found.items() if value is not None}


def _names_in(tools: JsonValue) -> list[JsonValue]:
    listed = tools if isinstance(tools, list) else []
    return [name for tool in listed if isinstance(tool, dict) and (name := as_text(tool.get("name")))]


def _keys_in(tools: JsonValue) -> JsonObject:
    """The key under which a tool has an output that is no object, by the tool's name."""
    listed = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    found = {as_text(tool.get("name")): as_text(tool.get("outer_typed_dict_key")) for tool in listed}
    return {name: key for name, key in found.items() if name and key}


def _bool(value: JsonValue) -> bool | None:
    return value if isinstance(value, bool) else None


def _object(value: JsonValue) -> JsonObject | None:
    found = parsed(value)
    return found if isinstance(found, dict) else None
