"""Arguments and answers of tools inside the objects that frameworks hand around."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_text


@dataclass(frozen=True, kw_only=True, slots=True)
class Unwrapped:
    """What was inside, and what its wrapper said of it."""

    value: JsonValue
    call_id: str | None = None
    tool_name: str | None = None
    is_error: bool = False
    arguments: JsonValue = None
    """With which the call was made, where an answer says so."""
    is_told_otherwise: bool = False
    """Whether it is told twice, and not alike."""


def call_ids(*told: str | None) -> tuple[str | None, str | None]:
    """The id of a call as it is told first, and another one that is told beside it."""
    ids = list(dict.fromkeys(each for each in told if each is not None))
    first, other, *_ = (*ids, None, None)
    return first, other


def unwrapped_arguments(value: JsonValue) -> Unwrapped:
    """`{"args": [], "kwargs": {…}}` of a called function, and `{"name", "args", "id"}` of LangChain's tool call.

    Positional arguments have no names, so a call that has some stays as it came.
    """
    if not isinstance(value, dict):
        return Unwrapped(value=value)
    named = value.get("kwargs")
    if isinstance(named, dict) and value.keys() <= {"args", "kwargs"} and not value.get("args"):
        return Unwrapped(value=named)
    if value.get("type") == "tool_call" and "args" in value:
        return Unwrapped(value=value["args"], call_id=as_text(value.get("id")))
    return Unwrapped(value=value)


def unwrapped_answer(value: JsonValue) -> Unwrapped:
    """LangChain's tool message and LlamaIndex's tool output: what of it the model was given."""
    if not isinstance(value, dict):
        return Unwrapped(value=value)
    message = _tool_message(value)
    if message is not None:
        return Unwrapped(
            value=message["content"],
            call_id=as_text(message.get("tool_call_id")),
            tool_name=as_text(message.get("name")),
            is_error=message.get("status") == "error",
        )
    text = _text_of_blocks(value)
    return Unwrapped(value=value) if text is None else _of_llama_index(value, text)


def _of_llama_index(output: JsonObject, text: str) -> Unwrapped:
    """What a function returned stands beside its text; of anything else than a text it is a print."""
    returned = output.get("raw_output")
    return Unwrapped(
        value=text,
        tool_name=as_text(output.get("tool_name")),
        is_error=output.get("is_error") is True,
        arguments=unwrapped_arguments(output.get("raw_input")).value,
        is_told_otherwise=isinstance(returned, str) and returned != text,
    )


def _tool_message(value: JsonObject) -> JsonObject | None:
    """As `messages_to_dict` writes it, as `dumpd` does, bare, or last in the update of a LangGraph command."""
    for inner in (value.get("data"), value.get("kwargs"), value):
        if isinstance(inner, dict) and "tool_call_id" in inner and "content" in inner:
            return inner
    update = value.get("update")
    messages = update.get("messages") if isinstance(update, dict) else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    return _tool_message(last) if isinstance(last, dict) and "update" not in last else None


def _text_of_blocks(value: JsonObject) -> str | None:
    blocks = value.get("blocks")
    if not isinstance(blocks, list) or not blocks or "raw_output" not in value:
        return None
    texts = [text for block in blocks if isinstance(block, dict) and isinstance(text := block.get("text"), str)]
    return "\n".join(texts) if len(texts) == len(blocks) else None


def unwrapped_result(content: JsonValue) -> Unwrapped:
    """`{"type": "json", "value": …}`, as the AI SDK gives a tool's answer to the model."""
    value = parsed(content)
    if not isinstance(value, dict) or value.keys() != {"type", "value"} or value["type"] not in _AI_SDK_KINDS:
        return Unwrapped(value=content)
    return Unwrapped(value=value["value"], is_error=value["type"].startswith("error"))


_AI_SDK_KINDS = ("text", "json", "content", "error-text", "error-json")


def decoded_once(arguments: JsonValue) -> JsonValue:
    """JSON text that was written as a JSON text once more; the text below then."""
    if not isinstance(arguments, str) or not arguments.lstrip().startswith('"'):
        return arguments
    inner = parsed(arguments)
    return inner if isinstance(inner, str) and inner.lstrip().startswith(("{", "[")) else arguments
