"""The body of a request to chat completions: messages, tools, the shape of the output, settings."""

from __future__ import annotations

from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.agents.live_model.messages import chat_messages
from sessions_app.core.payload import JsonObject, compact_json

_SENT = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "seed": "seed",
    "stop": "stop",
    "stop_sequences": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "parallel_tool_calls": "parallel_tool_calls",
}
"""Settings that are sent, by their names in a recording."""

_ASK_FOR_JSON = """
Always respond with a JSON object that's compatible with this schema:

{schema}

Don't include any text or Markdown fencing before or after.
"""
_STRUCTURED_TEXT = ("native", "prompted")


def settings_not_sent(settings: JsonObject | None) -> list[str]:
    """Names of recorded settings that a chat completion is not asked with."""
    return sorted(name for name, value in (settings or {}).items() if value is not None and name not in _SENT)


def chat_body(
    messages: list[JsonObject], parameters: JsonObject | None, *, model: str, settings: JsonObject | None
) -> JsonObject:
    """The body of the request. Raises `ModelUnavailable` naming what cannot be sent."""
    parameters = parameters or {}
    if parameters.get("native_tools"):
        raise ModelUnavailable("The request offers a tool that runs at the provider, which is not sent.")
    sent = {_SENT[name]: value for name, value in (settings or {}).items() if name in _SENT and value is not None}
    tools = _tools(parameters)
    if not tools:
        sent.pop("parallel_tool_calls", None)
    return {
        "model": model,
        "messages": chat_messages(_with_schema(messages, parameters)),
        **({"tools": tools} if tools else {}),
        **({"tool_choice": "required"} if tools and not _allows_text(parameters) else {}),
        **_response_format(parameters),
        **sent,
    }


# --- tools and output --------------------------------------------------------------------------


def _mode(parameters: JsonObject) -> str:
    mode = parameters.get("output_mode") or "text"
    if mode != "auto":
        return str(mode)
    return "tool" if parameters.get("output_tools") else "native"


def _allows_text(parameters: JsonObject) -> bool:
    if parameters.get("output_mode") == "auto":
        return _mode(parameters) == "native"
    return bool(parameters.get("allow_text_output", True))


def _tools(parameters: JsonObject) -> list[JsonObject]:
    revealed = parameters.get("revealed_tool_names") or ()
    offered = [
        tool
        for tool in parameters.get("function_tools") or []
        if not tool.get("defer_loading") or tool["name"] in revealed
    ]
    if _mode(parameters) not in _STRUCTURED_TEXT:
        offered += parameters.get("output_tools") or []
    return [{"type": "function", "function": _function(tool)} for tool in offered]


def _function(tool: JsonObject) -> JsonObject:
    """As recorded and not strict: a strict schema has a shape of its own that not every server takes."""
    return {
        "name": tool["name"],
        "description": tool.get("description") or "",
        "parameters": tool.get("parameters_json_schema") or {"type": "object", "properties": {}},
    }


def _response_format(parameters: JsonObject) -> JsonObject:
    output = parameters.get("output_object")
    if _mode(parameters) != "native" or not output:
        return {}
    schema = {"name": output.get("name") or "final_result", "schema": output.get("json_schema") or {}}
    if output.get("description"):
        schema["description"] = output["description"]
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _with_schema(messages: list[JsonObject], parameters: JsonObject) -> list[JsonObject]:
    """With the sentences that ask for JSON in the instructions, where the output is asked for in words."""
    output, newest = parameters.get("output_object"), messages[-1] if messages else {}
    if _mode(parameters) != "prompted" or not output or newest.get("kind") != "request":
        return messages
    template = parameters.get("prompted_output_template")
    if template is False:
        return messages
    words = (template or _ASK_FOR_JSON).replace("{schema}", compact_json(output.get("json_schema") or {}).decode())
    told = [text for text in (newest.get("instructions"), words) if text]
    return [*messages[:-1], {**newest, "instructions": "\n\n".join(told)}]
