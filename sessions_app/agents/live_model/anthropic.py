"""Anthropic's messages: a chat completion's request written as one, and its answer read as a completion's."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from sessions_app.agents.live_model.answers import json_of, list_of, object_of, string_of
from sessions_app.core.payload import JsonObject, compact_json, load_finite

VERSION = "2023-06-01"
_MOST_TOKENS = 4096
"""Of an answer whose recording names no limit: messages have to name one."""
_SAME = {"model": "model", "temperature": "temperature", "top_p": "top_p", "max_tokens": "max_tokens"}
_NOT_SENT = ("seed", "presence_penalty", "frequency_penalty")
_FINISHED = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def not_sent_as_messages(body: JsonObject) -> list[str]:
    """Settings of a chat completion that messages have no word for."""
    return [name for name in _NOT_SENT if name in body]


def messages_body(body: JsonObject) -> JsonObject:
    """From the body of a chat completion."""
    told = [message for message in body["messages"] if message["role"] == "system"]
    said = [message for message in body["messages"] if message["role"] != "system"]
    stop = body.get("stop")
    return {
        "max_tokens": _MOST_TOKENS,
        **{name: body[own] for name, own in _SAME.items() if own in body},
        **({"system": "\n\n".join(_text_of(message["content"]) for message in told)} if told else {}),
        "messages": [_turn(role, list(turns)) for role, turns in groupby(said, key=_role)],
        **({"stop_sequences": [stop] if isinstance(stop, str) else stop} if stop else {}),
        **_tools(body),
        **_output(body),
    }


def _role(message: JsonObject) -> str:
    """Answers of tools are the user's."""
    return "assistant" if message["role"] == "assistant" else "user"


def _turn(role: str, messages: list[JsonObject]) -> JsonObject:
    """Messages of one side that follow each other are one."""
    return {"role": role, "content": [block for message in messages for block in _blocks(message)]}


def _blocks(message: JsonObject) -> list[JsonObject]:
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
    content = message["content"]
    texts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    # Empty texts are refused.
    return [*(text for text in texts if text["text"]), *(_use(call) for call in message.get("tool_calls") or [])]


def _use(call: JsonObject) -> JsonObject:
    function = call["function"]
    arguments = load_finite(function["arguments"])
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(item["text"] for item in content)


def _tools(body: JsonObject) -> JsonObject:
    if "tools" not in body:
        return {}
    functions = [tool["function"] for tool in body["tools"]]
    tools = [
        {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
        for each in functions
    ]
    choice = {"type": "any" if body.get("tool_choice") == "required" else "auto"}
    one_at_a_time = {"disable_parallel_tool_use": True} if body.get("parallel_tool_calls") is False else {}
    return {"tools": tools, "tool_choice": choice | one_at_a_time}


def _output(body: JsonObject) -> JsonObject:
    if "response_format" not in body:
        return {}
    schema = body["response_format"]["json_schema"]["schema"]
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def as_completion(content: bytes) -> bytes:
    """The answer as a chat completion says it. Raises `ModelUnavailable`."""
    answer = object_of(json_of(content))
    blocks = [object_of(block) for block in list_of(answer.get("content"))]
    usage = object_of(answer.get("usage") or {})
    message = {
        "content": "".join(string_of(block.get("text")) for block in blocks if block.get("type") == "text"),
        "tool_calls": [_call(block) for block in blocks if block.get("type") == "tool_use"],
    }
    finished = _FINISHED.get(string_of(answer.get("stop_reason")))
    return compact_json(
        {
            "id": answer.get("id"),
            "model": answer.get("model"),
            "choices": [{"message": message, "finish_reason": finished}],
            "usage": {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")},
        }
    )


def _call(block: JsonObject) -> JsonObject:
    return {"id": block.get("id"), "function": {"name": block.get("name"), "arguments": block.get("input")}}
