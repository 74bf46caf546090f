"""What of a request reaches the model, in one form for equal requests.

Recordings hold much beside it: times, ids, usage, how the library keeps its books. Fields that nobody knows yet are
kept: better a request that is not found again than an answer lent to another one. Nothing here raises, whatever the
values are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sessions_app.core.payload import JsonObject, JsonValue, Payload

Calls = Mapping[str, int]
"""The calls of the newest answer: id to number, from 1 in order of appearance."""

_EMPTY: tuple[JsonValue, ...] = (None, [], {})
"""A field that was left out and one that is empty say the same."""
_OF_PARTS = frozenset(
    {
        "timestamp",
        "run_id",
        "conversation_id",
        "usage",
        "metadata",
        "provider_name",
        "provider_details",
        "tool_call_id",
        "retry",
        "content_file_digests",
        "dynamic_ref",
        "context_id",
        "otel_metadata",
    }
)
_OF_ANSWERS = _OF_PARTS | {"id", "signature"}
"""In requests an id names an instruction, so it stays there."""
_OF_TOOLS = frozenset({"capability_id", "toolset_id", "kind", "metadata", "timeout", "outer_typed_dict_key"})
_OF_PARAMETERS = frozenset(
    {
        "function_tools",
        "output_tools",
        "output_object",
        "instruction_parts",
        "instruction_visibility",
        "tool_visibility",
        "revealed_tool_names",
        "introduced_tool_names",
        "deferred_capability_ids",
        "cache",
    }
)
"""Read on their own below, or worked out by the library from the conversation and the tools."""
_PART_DEFAULTS: JsonObject = {"outcome": "success", "scope": "conversation"}
_FILE_DEFAULTS: JsonObject = {"force_download": False}
_TOOL_DEFAULTS: JsonObject = {
    "parameters_json_schema": {"type": "object", "properties": {}},
    "sequential": False,
    "defer_loading": False,
    "include_return_schema": False,
}
_PARAMETER_DEFAULTS: JsonObject = {"output_mode": "text", "allow_text_output": True, "allow_image_output": False}


def message_form(message: JsonValue, calls: Calls) -> JsonValue:
    """A message without its instructions, which only the newest request brings to the model."""
    parts = parts_of(message)
    if parts is None:
        return _said(message, _OF_PARTS, {}) if isinstance(message, dict) else message
    unsaid = _OF_ANSWERS if is_answer(message) else _OF_PARTS
    return [message.get("kind"), [_part_form(part, calls, unsaid) for part in parts]]


def parts_of(message: JsonValue) -> list[JsonValue] | None:
    parts = message.get("parts") if isinstance(message, dict) else None
    return parts if isinstance(parts, list) else None


def is_answer(message: JsonValue) -> bool:
    return isinstance(message, dict) and message.get("kind") == "response"


def numbered_calls(parts: Sequence[JsonValue]) -> Calls:
    """The calls that an answer asks for; of equal ids the first counts."""
    ids = [part.get("tool_call_id") for part in parts if isinstance(part, dict) and _is_call(part)]
    numbers: dict[str, int] = {}
    for number, call_id in enumerate(ids, start=1):
        if isinstance(call_id, str):
            numbers.setdefault(call_id, number)
    return numbers


def _is_call(part: JsonObject) -> bool:
    return part.get("part_kind") in ("tool-call", "builtin-tool-call")


def _part_form(part: JsonValue, calls: Calls, unsaid: frozenset[str]) -> JsonValue:
    if not (isinstance(part, dict) and part):
        return part  # of empty ones a message may hold very many
    part = _todays_retry(part)
    if _is_call(part):
        part = {**part, "args": _arguments(part.get("args"))}
    form = _said(part, unsaid, _PART_DEFAULTS)
    if "content" in part:
        form["content"] = _content(part)
    call_id = part.get("tool_call_id")
    if isinstance(call_id, str) and call_id in calls:
        form["call"] = calls[call_id]
    return dict(sorted(form.items()))


def _todays_retry(part: JsonObject) -> JsonObject:
    """1.x called both an answer that asks for another try and feedback without a call `retry-prompt`."""
    if part.get("part_kind") != "retry-prompt":
        return part
    if part.get("tool_name") is None:
        return {**part, "part_kind": "retry-feedback"}
    return {**part, "part_kind": "tool-return", "outcome": "retried"}


def _arguments(args: JsonValue) -> JsonValue:
    """A JSON text and the object that it says are the same, as are no arguments and an empty object."""
    if not isinstance(args, str):
        return args
    try:
        return Payload.of_text(args).parsed or None
    except ValueError:
        return args


def _content(part: JsonObject) -> JsonValue:
    """What a tool answered is compared whole; the files of a prompt are the library's objects."""
    content = part["content"]
    if part.get("part_kind") != "user-prompt" or not isinstance(content, list):
        return content
    return [_said(item, _OF_PARTS, _FILE_DEFAULTS) if isinstance(item, dict) else item for item in content]


def parameters_form(parameters: JsonValue) -> JsonValue:
    """Tools, in whatever order they came, and how the output is asked for."""
    if not isinstance(parameters, dict):
        return parameters or {}
    form = _said(parameters, _OF_PARAMETERS, _PARAMETER_DEFAULTS)
    for name in ("function_tools", "output_tools"):
        form[name] = _tool_forms(parameters.get(name))
    output = parameters.get("output_object")
    form["output_object"] = _said(output, frozenset(), {}) if isinstance(output, dict) else output
    return _said(form, frozenset(), {})


def _tool_forms(tools: JsonValue) -> JsonValue:
    if not isinstance(tools, list):
        return tools
    return sorted((_tool_form(tool) for tool in tools), key=_name)


def _tool_form(tool: JsonValue) -> JsonValue:
    if not isinstance(tool, dict):
        return tool
    form = _said(tool, _OF_TOOLS, _TOOL_DEFAULTS)
    if not tool.get("include_return_schema"):
        form.pop("return_schema", None)
    return form


def _name(tool: JsonValue) -> str:
    return str(tool.get("name")) if isinstance(tool, dict) else ""


def instructions_in(parameters: JsonValue) -> str | None:
    """The instructions as the library hands them to the model; None when the parameters do not hold them."""
    parts = parameters.get("instruction_parts") if isinstance(parameters, dict) else None
    if not isinstance(parts, list):
        return None
    texts = [part.get("content") for part in parts if isinstance(part, dict)]
    return "\n\n".join(text for text in texts if isinstance(text, str)).strip() or None


def settings_form(settings: JsonValue) -> JsonValue:
    if not isinstance(settings, dict):
        return settings or {}
    return {name: value for name, value in settings.items() if value is not None}


def _said(fields: JsonObject, unsaid: frozenset[str], defaults: JsonObject) -> JsonObject:
    return {
        name: value
        for name, value in sorted(fields.items())
        if name not in unsaid and value not in _EMPTY and value != defaults.get(name)
    }
