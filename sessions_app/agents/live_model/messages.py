"""From messages as Pydantic AI keeps them to those of OpenAI's chat completions.

The words are those that Pydantic AI itself would send. Files are never sent, nor are addresses of files; thoughts of
a model stay behind. What a chat cannot say is refused and not left out.
"""

from __future__ import annotations

from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.core.payload import JsonObject, JsonValue, compact_json, load_finite

_FILES = frozenset({"binary", "image-url", "audio-url", "video-url", "document-url", "uploaded-file"})
_TEXTS = frozenset({"text-content", "structured-content"})
_RESULTS = frozenset({"tool-return", "retry-prompt", "retry-feedback"})
_ERRORS = frozenset({"failed", "retried"})
_FEEDBACK = (
    "Your previous response failed the application's validation "
    "(this is automated feedback, not a message from the user):"
)


def chat_messages(messages: list[JsonObject]) -> list[JsonObject]:
    """Raises `ModelUnavailable` naming what cannot be sent. Instructions follow the system prompts at the beginning."""
    sent = [chat for message in messages for chat in _of_message(message)]
    instructions = _instructions([message for message in messages if message.get("kind") == "request"])
    if not instructions:
        return sent
    at = next((index for index, chat in enumerate(sent) if chat["role"] != "system"), len(sent))
    return [*sent[:at], {"role": "system", "content": instructions}, *sent[at:]]


def _instructions(requests: list[JsonObject]) -> str | None:
    """Those of the newest request; one that only brings results and has none goes by those of the one before."""
    newest, *earlier = requests[::-1] or [{}]
    kinds = {part.get("part_kind") for part in newest.get("parts") or []}
    if newest.get("instructions") is None and kinds <= _RESULTS and earlier:
        newest = earlier[0]
    return newest.get("instructions")


def _of_message(message: JsonObject) -> list[JsonObject]:
    parts = message.get("parts") or []
    if message.get("kind") == "response":
        return _assistant(parts)
    return [_request_part(part) for part in parts]


# --- what the model was told -------------------------------------------------------------------


def _request_part(part: JsonObject) -> JsonObject:
    content = part.get("content")
    match part.get("part_kind"):
        case "system-prompt":
            return {"role": "system", "content": content}
        case "user-prompt":
            return {"role": "user", "content": _prompt(content)}
        case "tool-return":
            return _tool(part, part.get("outcome"))
        case "retry-prompt" if part.get("tool_name"):
            return _tool(part, "retried")
        case "retry-prompt" | "retry-feedback":
            return {"role": "user", "content": _feedback(part)}
        case kind:
            raise _refused(kind)


def _prompt(content: JsonValue) -> JsonValue:
    if not isinstance(content, list):
        return content or ""
    return [_text(item) for item in content if _kind(item) != "cache-point"]


def _text(item: JsonValue) -> JsonObject:
    if _kind(item) in _TEXTS:
        item = item.get("content")
    if isinstance(item, str):
        return {"type": "text", "text": item}
    raise _refused(_kind(item))


def _tool(part: JsonObject, outcome: str | None) -> JsonObject:
    content = part.get("content")
    if _holds_file(content):
        raise ModelUnavailable("An answer of a tool holds a file, and files are not sent.")
    text = _as_text(content)
    if outcome in _ERRORS:
        text = _as_text({"error": content if outcome == "retried" and content is not None else text})
    return {"role": "tool", "tool_call_id": part.get("tool_call_id") or "", "content": text}


def _as_text(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    return "" if content is None else compact_json(content).decode()


def _feedback(part: JsonObject) -> str:
    content = part.get("content")
    cause = (part.get("retry") or {}).get("cause") or ("model_retry" if isinstance(content, str) else None)
    if cause == "no_output":
        return _as_text(content)
    tag = "pyai:retry_feedback" if cause == "model_retry" else "pyai:validation_errors"
    words = _as_text(_errors(content) if isinstance(content, list) else content)
    return f"{_FEEDBACK}\n<{tag}>\n{words}\n</{tag}>"


def _errors(details: list[JsonObject]) -> list[JsonObject]:
    """Errors about the whole answer all quote it; once is enough."""
    of_whole = [detail for detail in details if len(detail.get("loc") or ()) <= 1]
    again = [detail for detail in of_whole[1:] if detail.get("input") == of_whole[0].get("input")]
    return [
        {name: value for name, value in detail.items() if name != "ctx" and (name != "input" or detail not in again)}
        for detail in details
    ]


# --- what the model said -----------------------------------------------------------------------


def _assistant(parts: list[JsonObject]) -> list[JsonObject]:
    """One message, or none when the model had said nothing."""
    for part in parts:
        if part.get("part_kind") not in ("text", "thinking", "tool-call"):
            raise _refused(part.get("part_kind"))
    texts = [part.get("content") or "" for part in parts if part["part_kind"] == "text"]
    calls = [_call(part) for part in parts if part["part_kind"] == "tool-call"]
    if not texts and not calls:
        return []
    content = "\n\n".join(texts) if texts else None
    return [{"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}]


def _call(part: JsonObject) -> JsonObject:
    function = {"name": part.get("tool_name") or "", "arguments": _arguments(part.get("args"))}
    return {"id": part.get("tool_call_id") or "", "type": "function", "function": function}


def _arguments(args: JsonValue) -> str:
    """JSON of an object, for providers take nothing else; what the model wrote instead is kept inside of one."""
    if isinstance(args, str) and args:
        try:
            read = load_finite(args)
        except (ValueError, RecursionError):
            read = None
        args = read if isinstance(read, dict) else {"INVALID_JSON": args}
    return compact_json(args or {}).decode()


# --- what is not sent --------------------------------------------------------------------------


def _kind(item: JsonValue) -> str | None:
    kind = item.get("kind") if isinstance(item, dict) else None
    return kind if isinstance(kind, str) else None


def _holds_file(content: JsonValue) -> bool:
    if isinstance(content, list):
        return any(_holds_file(item) for item in content)
    if not isinstance(content, dict):
        return False
    return _kind(content) in _FILES or any(_holds_file(item) for item in content.values())


def _refused(kind: str | None) -> ModelUnavailable:
    if kind in _FILES or kind == "file":
        return ModelUnavailable("The conversation holds a file, and files are not sent.")
    if kind in ("builtin-tool-call", "builtin-tool-return"):
        return ModelUnavailable("The conversation holds a call of a tool that runs at the provider, which is not sent.")
    return ModelUnavailable("The conversation holds a part that chat completions have no word for.")
