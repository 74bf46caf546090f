"""A model call in OpenInference's attributes."""

from __future__ import annotations

from typing import Any

from sessions_app.core.conventions.numbered import numbered
from sessions_app.core.conventions.openinference.messages import (
    HIDDEN,
    answer_of,
    are_told_otherwise,
    input_messages,
    told,
)
from sessions_app.core.conventions.told_twice import are_offers_told_otherwise, is_repeated_otherwise
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import Read, as_text
from sessions_app.core.spans.provider_messages.tools import fields_beside
from sessions_app.core.spans.reading import ChatMessage, TextPart, ToolDefinition

_SAMPLING = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "stop",
        "stop_sequences",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "n",
        "parallel_tool_calls",
        "tool_choice",
        "response_format",
        "reasoning",
        "reasoning_effort",
        "service_tier",
        "text",
        "truncation",
        "verbosity",
    }
)
_NO_SETTINGS = frozenset(
    {
        "model",
        "model_name",
        "model_id",
        "modelId",
        "messages",
        "input",
        "prompt",
        "contents",
        "instructions",
        "system",
        "tools",
        "functions",
        "_type",
        "class_name",
        "metadata",
        "context_window",
        "is_chat_model",
        "is_function_calling_model",
        "system_role",
        "api_key",
        "api_base",
        "base_url",
        "headers",
        "extra_headers",
        "default_headers",
    }
)


def model_fields(read: Read) -> dict[str, Any]:
    parameters = read.object("llm.invocation_parameters") or {}
    is_choice, tools = parameters.get("n") not in (None, 1), _tools(read)
    asked, answered = read.under("llm.input_messages."), read.under("llm.output_messages.")
    messages = input_messages(asked) or _prompts(read)
    return {
        "messages": messages,
        "answer": answer_of(answered, is_choice=is_choice) or _completion(read) or _text(read),
        "are_messages_told_otherwise": (
            are_told_otherwise(asked)
            or are_told_otherwise(answered)
            or is_repeated_otherwise(as_text(parameters.get("instructions")), messages, None)
        ),
        "tools": tools,
        "are_tools_told_otherwise": are_offers_told_otherwise(tools, _definitions(parameters.get("tools"))),
        "provider": as_text(read.raw("llm.provider", "llm.system")),
        "settings": settings_of(parameters),
        "finish_reason": read.text("llm.finish_reason"),
        "input_tokens": read.count("llm.token_count.prompt"),
        "output_tokens": read.count("llm.token_count.completion"),
        **_models(read, parameters),
    }


def _models(read: Read, parameters: JsonObject) -> dict[str, Any]:
    """`llm.model_name` is the response's in some frameworks and the request's in others.

    It is the response's for sure only where the request tells another name, or where the parameters are a response.
    """
    of_parameters = as_text(parameters.get("model")) or as_text(parameters.get("model_name"))
    requested = read.text("llm.request.model_name") or (None if _is_response(parameters) else of_parameters)
    answered, named = read.text("llm.response.model_name"), read.text("llm.model_name")
    if _is_response(parameters) or named != requested:
        answered = answered or (None if requested is None and not _is_response(parameters) else named)
    return {"model": requested or (None if answered else named), "answered_model": answered}


def settings_of(parameters: JsonObject) -> JsonObject | None:
    """What steers the answer, without the messages, the tools and the connection.

    Some frameworks put the whole response here, which repeats the settings among much else.
    """
    if _is_response(parameters):
        kept = {name: value for name, value in parameters.items() if name in _SAMPLING}
    else:
        kept = {name: value for name, value in parameters.items() if name not in _NO_SETTINGS}
    return {name: value for name, value in kept.items() if value is not None and value not in ([], {})} or None


def _is_response(parameters: JsonObject) -> bool:
    return "id" in parameters and bool({"created_at", "created", "object", "output", "usage"} & parameters.keys())


def _tools(read: Read) -> tuple[ToolDefinition, ...] | None:
    return _definitions([each.get("tool.json_schema") for each in numbered(read.under("llm.tools."))])


def _definitions(offered: JsonValue) -> tuple[ToolDefinition, ...] | None:
    rows = offered if isinstance(offered, list) else []
    return tuple(found for each in rows if (found := definition_of(parsed(each))) is not None) or None


def definition_of(value: JsonValue) -> ToolDefinition | None:
    """OpenAI's (with its `function` or flat), Anthropic's (`input_schema`) and Bedrock's (`toolSpec`) spelling."""
    if not isinstance(value, dict):
        return None
    inner = next((value[key] for key in ("function", "toolSpec") if isinstance(value.get(key), dict)), value)
    name = as_text(inner.get("name"))
    if name is None:
        return None
    return ToolDefinition(
        name=name,
        description=as_text(inner.get("description")),
        parameters=_schema(inner),
        beside=fields_beside(value, inner),
    )


def _schema(tool: JsonObject) -> JsonObject | None:
    found = (parsed(tool.get(key)) for key in ("parameters", "input_schema", "inputSchema", "args_schema"))
    schema = next((each for each in found if isinstance(each, dict)), None)
    wrapped = None if schema is None else schema.get("json")
    return wrapped if isinstance(wrapped, dict) else schema


def _prompts(read: Read) -> tuple[ChatMessage, ...] | None:
    """Of models that complete a text: `llm.prompts`, a list or numbered."""
    listed = read.list("llm.prompts") or [each.get("prompt.text") for each in numbered(read.under("llm.prompts."))]
    texts = [text for text in listed if isinstance(text, str) and text != HIDDEN]
    return tuple(ChatMessage(role="user", parts=(TextPart(text=text),)) for text in texts) or None


def _completion(read: Read) -> ChatMessage | None:
    choices = numbered(read.under("llm.choices."))
    text = told(choices[0].get("completion.text")) if choices else None
    return ChatMessage(role="assistant", parts=(TextPart(text=text),)) if isinstance(text, str) else None


def _text(read: Read) -> ChatMessage | None:
    """An answer that is only a text may stand in the span's output alone."""
    value, mime = read.raw("output.value"), read.raw("output.mime_type")
    if mime != "text/plain" or not isinstance(value, str) or told(value) is None or not _has_messages(read):
        return None
    return ChatMessage(role="assistant", parts=(TextPart(text=value),))


def _has_messages(read: Read) -> bool:
    return any(name.startswith("llm.input_messages.") for name in read.names())
