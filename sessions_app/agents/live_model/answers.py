"""What comes back from chat completions: an answer as Pydantic AI keeps it, or why there is none."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.core.errors import RecordError
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.payload import JsonObject, JsonValue

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
        "authentication_error",
        "billing_error",
        "invalid_request_error",
        "not_found_error",
        "overloaded_error",
        "permission_error",
        "rate_limit_error",
        "insufficient_quota",
        "invalid_api_key",
        "model_not_found",
        "rate_limit_exceeded",
        "unsupported_parameter",
        "unsupported_value",
    }
)
_LIMITS = Limits(max_depth=100, max_values=100_000)
_UNKNOWN_SHAPE = "Its answer is none of a chat completion."


def read_answer(content: bytes, *, model: str, not_sent: list[str], now: datetime) -> JsonObject:
    """A response as Pydantic AI keeps it. Raises `ModelUnavailable`."""
    value = object_of(json_of(content))
    choice = object_of(next(iter(list_of(value.get("choices"))), None))
    message, refusal = object_of(choice.get("message")), string_of(object_of(choice.get("message")).get("refusal"))
    finished = string_of(choice.get("finish_reason")) or None
    details = {"refusal": refusal} if refusal else {"finish_reason": finished}
    return {
        "parts": [] if refusal else _parts(message),
        "usage": _usage(value.get("usage")),
        "model_name": string_of(value.get("model")) or model,
        "timestamp": now.isoformat(),
        "provider_details": details,
        "provider_response_id": string_of(value.get("id")) or None,
        "finish_reason": "content_filter" if refusal else _FINISHED.get(finished or ""),
        "metadata": {"settings_not_sent": not_sent} if not_sent else None,
        "kind": "response",
    }


def _parts(message: JsonObject) -> list[JsonObject]:
    thought = string_of(message.get("reasoning")) or string_of(message.get("reasoning_content"))
    text = string_of(message.get("content"))
    return [
        *([{"content": thought, "part_kind": "thinking"}] if thought else []),
        *([{"content": text, "part_kind": "text"}] if text else []),
        *(_tool_call(object_of(call)) for call in list_of(message.get("tool_calls"))),
    ]


def _tool_call(call: JsonObject) -> JsonObject:
    function = object_of(call.get("function"))
    name, arguments = string_of(function.get("name")), function.get("arguments")
    if not name or not isinstance(arguments, str | dict | None):
        raise ModelUnavailable(_UNKNOWN_SHAPE)
    return {
        "tool_name": name,
        "args": arguments,
        "tool_call_id": string_of(call.get("id")) or f"call_{uuid4().hex}",
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
        error = object_of(object_of(json_of(content)).get("error"))
    except ModelUnavailable:
        return ""
    known = [code for code in (error.get("code"), error.get("type")) if isinstance(code, str) and code in _KNOWN_CODES]
    field = error.get("param")
    named = f" ({field})" if isinstance(field, str) and field in sent else ""
    return f": {known[0].replace('_', ' ')}{named}" if known else ""


def json_of(content: bytes) -> JsonValue:
    try:
        return load_strict(content, _LIMITS)
    except RecordError:
        raise ModelUnavailable("Its answer is not JSON that can be kept.") from None


def object_of(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise ModelUnavailable(_UNKNOWN_SHAPE)
    return value


def list_of(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list | None):
        raise ModelUnavailable(_UNKNOWN_SHAPE)
    return value or []


def string_of(value: JsonValue) -> str:
    if not isinstance(value, str | None):
        raise ModelUnavailable(_UNKNOWN_SHAPE)
    return value or ""
