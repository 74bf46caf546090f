"""Tool definitions of the record format as GenAI writes them, and back."""

from __future__ import annotations

from sessions_app.core.errors import RecordError
from sessions_app.core.otlp_export.parts import MARK, as_object
from sessions_app.core.payload import JsonObject, JsonValue, compact_json
from sessions_app.core.run import ModelCall

_NAMES = {"name": "name", "description": "description", "parameters_json_schema": "parameters"}


def definitions_of(call: ModelCall) -> list[JsonObject] | None:
    """Tools as registered at that moment, else as sent with the request; None when neither was captured."""
    if call.tools is not None:
        return [_written(tool.value) for tool in call.tools]
    parameters = call.parameters.value if call.parameters else None
    sent = parameters.get("function_tools") if isinstance(parameters, dict) else None
    return [_written(tool) for tool in sent] if isinstance(sent, list) else None


def _written(tool: JsonValue) -> JsonObject:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return {"type": "unknown", MARK: {"whole": tool}}
    said = {new: tool[old] for old, new in _NAMES.items() if old in tool}
    return {"type": "function", **said, MARK: {key: tool[key] for key in tool if key not in _NAMES}}


def read_definitions(written: JsonValue) -> list[bytes]:
    """JSON texts of the definitions as the record has them."""
    if not isinstance(written, list):
        raise RecordError("Exported tool definitions are not a list.")
    return [compact_json(_read(as_object(tool))) for tool in written]


def _read(written: JsonObject) -> JsonValue:
    ours = as_object(written.get(MARK))
    if written.get("type") == "unknown" and "whole" in ours:
        return ours["whole"]
    return {**{old: written[new] for old, new in _NAMES.items() if new in written}, **ours}
