"""What is sent to chat completions and what comes back, without the sending."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from sessions_app.agents.chat_messages import chat_messages
from sessions_app.agents.endpoint import ModelUnavailable
from sessions_app.core.errors import RecordError
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.payload import JsonObject, JsonValue, compact_json

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

_FINISHED = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "content_filter": "content_filter",
}
_KNOWN_CODES = frozenset(
    {
        "billing_hard_limit_reached",
        "content_filter",
        "context_length_exceeded",
        "insufficient_quota",
        "invalid_api_key",
        "model_not_found",
        "rate_limit_exceeded",
        "unsupported_parameter",
        "unsupported_value",
    }
)
_ASK_FOR_JSON = """
Always respond with a JSON object that's compatible with this schema:

{schema}

Don't include any text or Markdown fencing before or after.
"""
_STRUCTURED_TEXT = ("native", "prompted")
_LIMITS = Limits(max_depth=100, max_values=100_000)
_UNKNOWN_SHAPE = "Its answer is none of a chat completion."


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


# --- answers -----------------------------------------------------------------------------------


def read_answer(content: bytes, *, model: str, not_sent: list[str], now: datetime) -> JsonObject:
    """A response as Pydantic AI keeps it. Raises `ModelUnavailable`."""
    value = _object(_json(content))
    choice = _object(next(iter(_list(value.get("choices"))), None))
    message, refusal = _object(choice.get("message")), _string(_object(choice.get("message")).get("refusal"))
    finished = _string(choice.get("finish_reason")) or None
    details = {"refusal": refusal} if refusal else {"finish_reason": finished}
    return {
        "parts": [] if refusal else _parts(message),
        "usage": _usage(value.get("usage")),
        "model_name": _string(value.get("model")) or model,
        "timestamp": now.isoformat(),
        "provider_details": details,
        "provider_response_id": _string(value.get("id")) or None,
        "finish_reason": "content_filter" if refusal else _FINISHED.get(finished or ""),
        "metadata": {"settings_not_sent": not_sent} if not_sent else None,
        "kind": "response",
    }


def _parts(message: JsonObject) -> list[JsonObject]:
    thought = _string(message.get("reasoning")) or _string(message.get("reasoning_content"))
    text = _string(message.get("content"))
    return [
        *([{"content": thought, "part_kind": "thinking"}] if thought else []),
        *([{"content": text, "part_kind": "text"}] if text else []),
        *(_tool_call(_object(call)) for call in _list(message.get("tool_calls"))),
    ]


def _tool_call(call: JsonObject) -> JsonObject:
    function = _object(call.get("function"))
    name, arguments = _string(function.get("name")), function.get("arguments")
    if not name or not isinstance(arguments, str | dict | None):
        raise ModelUnavailable(_UNKNOWN_SHAPE)
    return {
        "tool_name": name,
        "args": arguments,
        "tool_call_id": _string(call.get("id")) or f"call_{uuid4().hex}",
        "part_kind": "tool-call",
    }


def _usage(value: JsonValue) -> JsonObject:
    usage = value if isinstance(value, dict) else {}
    cached = usage.get("prompt_tokens_details")
    counts = {
        "input_tokens": usage.get("prompt_tokens"),
        "output_tokens": usage.get("completion_tokens"),
        "cache_read_tokens": cached.get("cached_tokens") if isinstance(cached, dict) else None,
    }
    return {name: count for name, count in counts.items() if type(count) is int and 0 <= count < 2**31}


def error_words(content: bytes, sent: JsonObject) -> str:
    """Why a provider refused: its code, when it is a known one, and the field of ours that it names.

    Nothing else of what it says: it may repeat the key or the conversation.
    """
    try:
        error = _object(_object(_json(content)).get("error"))
    except ModelUnavailable:
        return ""
    known = [code for code in (error.get("code"), error.get("type")) if isinstance(code, str) and code in _KNOWN_CODES]
    field = error.get("param")
    named = f" ({field})" if isinstance(field, str) and field in sent else ""
    return f": {known[0].replace('_', ' ')}{named}" if known else ""


def _json(content: bytes) -> JsonValue:
    try:
        return load_strict(content, _LIMITS)
    except RecordError:
        raise ModelUnavailable("Its answer is not JSON that can be kept.") from None


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise ModelUnavailable(_UNKNOWN_SHAPE)
    return value


def _list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list | None):
        raise ModelUnavailable(_UNKNOWN_SHAPE)
    return value or []


def _string(value: JsonValue) -> str:
    if not isinstance(value, str | None):
        raise ModelUnavailable(_UNKNOWN_SHAPE)
    return value or ""
