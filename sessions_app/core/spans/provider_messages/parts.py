"""The parts of a message: what stands in its `content`, `parts` or `tool_calls`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.provider_messages.fields import entries, entry, first, text
from sessions_app.core.spans.reading import (
    BuiltinResultPart,
    CallPart,
    OtherPart,
    Part,
    ResultPart,
    TextPart,
    ThinkingPart,
)


def parts_of(content: JsonValue) -> list[Part]:
    """All parts of a message's content: a text, one part, or a list of both. Empty texts are none."""
    if content is None or content == "":
        return []
    items = content if isinstance(content, list) else [content]
    return [part_of(item) for item in items if item not in ("", None)]


def part_of(item: JsonValue) -> Part:
    """One part by its own shape; an `OtherPart` where nobody here knows it."""
    if isinstance(item, str):
        return TextPart(text=item)
    if not isinstance(item, dict):
        return OtherPart(kind=type(item).__name__, value=item)
    found = _typed(item) if isinstance(item.get("type"), str) else _untyped(item)
    return found or OtherPart(kind=text(item, "type") or "unknown", value=item)


def call_of(item: JsonObject) -> CallPart | None:
    """A call for a tool; None when it names none."""
    fields = {**item, **entry(item, "function", "custom")}
    name = text(fields, "name", "toolName", "tool_name")
    if name is None:
        return None
    call_id = text(fields, "call_id", "toolCallId", "tool_call_id", "toolUseId", "id")
    arguments = first(fields, "arguments", "args", "input")
    return CallPart(tool_name=name, call_id=call_id, arguments=arguments, is_builtin=item.get("builtin") is True)


def _builtin_call(item: JsonObject) -> CallPart | None:
    """OpenTelemetry puts what was asked beside the name; others have it as any call has."""
    own = entry(item, "server_tool_call")
    found = call_of({"name": text(own, "type"), "arguments": own, **item} if own else item)
    return found and replace(found, is_builtin=True)


def _builtin_result(item: JsonObject) -> BuiltinResultPart:
    own = entry(item, "server_tool_call_response")
    found = result_of({**item, "response": own} if own else item)
    name = found.tool_name or text(own, "type")
    return BuiltinResultPart(call_id=found.call_id, tool_name=name, content=found.content)


def _result(item: JsonObject) -> ResultPart | BuiltinResultPart:
    return _builtin_result(item) if item.get("builtin") is True else result_of(item)


def result_of(item: JsonObject) -> ResultPart:
    """A tool's answer."""
    output = first(item, "output", "result", "response", "content")
    content, is_error = _told(output) if _is_told(output) else (plain(output), False)
    return ResultPart(
        call_id=text(item, "tool_use_id", "tool_call_id", "toolCallId", "toolUseId", "call_id", "id"),
        tool_name=text(item, "name", "toolName", "tool_name"),
        content=content,
        is_error=is_error or item.get("is_error") is True or item.get("isError") is True or _has_failed(item, output),
    )


def plain(content: JsonValue) -> JsonValue:
    """What one text block or one JSON block holds; anything else as it came."""
    block = content[0] if isinstance(content, list) and len(content) == 1 else None
    if not isinstance(block, dict):
        return content
    if isinstance(block.get("text"), str) and block.get("type") in (None, "text", "input_text", "output_text"):
        return block["text"]
    return block["json"] if set(block) == {"json"} else content


def _is_told(output: JsonValue) -> bool:
    return isinstance(output, dict) and text(output, "type") in _OUTPUTS


_OUTPUTS = frozenset({"text", "json", "error-text", "error-json", "content", "execution-denied"})


def _told(output: JsonObject) -> tuple[JsonValue, bool]:
    """The Vercel AI SDK says which kind of output it is: `{"type": "json", "value": …}`."""
    is_error = output["type"].startswith(("error", "execution-denied"))
    return plain(first(output, "value", "reason", "text")), is_error


def _has_failed(item: JsonObject, output: JsonValue) -> bool:
    # Google: the response's only key is `error`. Bedrock and LangChain: a status.
    return item.get("status") == "error" or (isinstance(output, dict) and set(output) == {"error"})


def _text(item: JsonObject) -> Part | None:
    said = first(item, "text", "content", "refusal")
    return TextPart(text=said) if isinstance(said, str) else None


def _thinking(item: JsonObject) -> Part | None:
    # The summary of OpenAI Responses is a list of texts, empty when only an encrypted form was given.
    summary = "\n\n".join(text(each, "text") or "" for each in entries(item, "summary") if isinstance(each, dict))
    said = first(item, "thinking", "text", "reasoning", "reasoningText", "content") or summary
    if isinstance(said, dict):
        item, said = said, said.get("text")
    signature = text(item, "signature", "encrypted_content", "thoughtSignature", "thought_signature")
    if not isinstance(said, str) or not (said or signature or text(item, "id")):
        return None
    return ThinkingPart(text=said, id=text(item, "id"), signature=signature)


_TYPES: dict[str, Callable[[JsonObject], Part | None]] = {
    **dict.fromkeys(("text", "input_text", "output_text", "summary_text", "refusal"), _text),
    **dict.fromkeys(("thinking", "reasoning"), _thinking),
    **dict.fromkeys(("tool_use", "tool_call", "function_call", "function", "custom", "custom_tool_call"), call_of),
    **dict.fromkeys(("tool_result", "tool_call_response"), _result),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output"), result_of),
    **dict.fromkeys(("server_tool_call", "server_tool_use", "mcp_tool_use", "builtin_tool_call"), _builtin_call),
    **dict.fromkeys(("server_tool_call_response", "web_search_tool_result", "web_fetch_tool_result"), _builtin_result),
    **dict.fromkeys(("code_execution_tool_result", "mcp_tool_result", "builtin_tool_return"), _builtin_result),
}


def is_known_type(name: str) -> bool:
    return name.replace("-", "_") in _TYPES


def _typed(item: JsonObject) -> Part | None:
    read = _TYPES.get(item["type"].replace("-", "_"))
    return read(item) if read else None


_KEYS: dict[str, Callable[[JsonObject], Part | None]] = {
    "toolUse": call_of,
    "toolResult": result_of,
    "reasoningContent": _thinking,
    "functionCall": call_of,
    "function_call": call_of,
    "functionResponse": result_of,
    "function_response": result_of,
}
"""Bedrock and Google name a part's kind by its one key that is not null."""


def _untyped(item: JsonObject) -> Part | None:
    for key, read in _KEYS.items():
        if isinstance(item.get(key), dict):
            return read(item[key])
    if item.get("thought") is True:
        return _thinking(item)
    if {"name", "args"} <= item.keys():
        return call_of(item)
    return TextPart(text=item["text"]) if isinstance(item.get("text"), str) else None
