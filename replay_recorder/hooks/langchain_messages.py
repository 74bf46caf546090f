"""Messages of LangChain in the words of the record format, each request as what it adds to those before it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from replay_recorder.writing.json_text import JsonText, dumps, jsonable, name
from replay_recorder.writing.run_writer import now

Json = dict[str, Any]


class Asked(NamedTuple):
    """The messages of one request."""

    history: Json
    prior: list[JsonText] | None
    """Earlier turns, in the first request of a run."""
    instructions: str | None


class Histories:
    """The conversations of one run: agents inside of it have their own."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        """Model steps by all that was said up to and with their answer."""
        self._asked: dict[int, bytes] = {}

    def ask(self, step: int, messages: Sequence[Any]) -> Asked:
        instructions, rows = rows_of(messages)
        chain = _chain(rows)
        self._asked[step] = chain[-1] if chain else b""
        for length in range(len(rows), 0, -1):
            if (before := self._known.get(chain[length - 1])) is not None:
                return Asked({"after": before, "messages": rows[length:]}, None, instructions)
        prior = [] if self._known else rows[:-1]
        if not prior:
            return Asked({"messages": rows}, None, instructions)
        return Asked({"after": 0, "messages": rows[-1:]}, [JsonText(dumps(row)) for row in prior], instructions)

    def answered(self, step: int, response: Json) -> None:
        self._known[_next(self._asked.pop(step, b""), response)] = step


def _chain(rows: Sequence[Json]) -> list[bytes]:
    chain, node = [], b""
    for row in rows:
        node = _next(node, row)
        chain.append(node)
    return chain


def _next(node: bytes, row: Json) -> bytes:
    """What the model reads of a message; ids, usage and the like may be left out when it is sent back."""
    return hashlib.sha256(node + dumps([row["kind"], row["parts"]]).encode()).digest()


def rows_of(messages: Sequence[Any]) -> tuple[str | None, list[Json]]:
    """The system prompt in front, and the messages behind it; those of one side that follow each other are one."""
    start = next((place for place, each in enumerate(messages) if each.type != "system"), len(messages))
    instructions = "\n\n".join(text_of(each.content) for each in messages[:start]) or None
    tool_names: dict[str | None, str] = {}
    rows: list[Json] = []
    for message in messages[start:]:
        if message.type == "ai":
            rows.append(response_row(message))
            tool_names.update({call["id"]: call["name"] for call in calls_of(message)})
        else:
            if not rows or rows[-1]["kind"] == "response":
                rows.append({"parts": [], "instructions": instructions, "kind": "request"})
            rows[-1]["parts"].append(_request_part(message, tool_names))
    return instructions, rows


def _request_part(message: Any, tool_names: dict[str | None, str]) -> Json:
    if message.type == "system":
        return {"part_kind": "system-prompt", "content": text_of(message.content)}
    if message.type == "tool":
        call_id = message.tool_call_id
        called = name(tool_names.get(call_id) or message.name) or "tool"
        content = jsonable(message.content)
        return {"part_kind": "tool-return", "tool_name": called, "content": content, "tool_call_id": call_id}
    return {"part_kind": "user-prompt", "content": prompt_of(message.content)}


def response_row(message: Any) -> Json:
    parts = [*_said(message.content), *map(_call_part, calls_of(message))]
    return {"parts": parts, "kind": "response"}


def answer_of(message: Any) -> Json:
    """An answer that has just been given, with what is said about it."""
    about, usage = message.response_metadata or {}, message.usage_metadata
    facts = {
        "usage": usage and {key: usage.get(key) for key in ("input_tokens", "output_tokens")},
        "model_name": answered_model(message),
        "timestamp": now(),
        "provider_name": name(about.get("model_provider")),
        "provider_response_id": name(about.get("id")),
    }
    return {**response_row(message), **{key: value for key, value in facts.items() if value is not None}}


def answered_model(message: Any) -> str | None:
    about = message.response_metadata or {}
    return name(about.get("model_name") or about.get("model"))


def finish_reason(message: Any) -> str | None:
    about = message.response_metadata or {}
    return name(about.get("finish_reason") or about.get("stop_reason"))


def calls_of(message: Any) -> list[Json]:
    """The calls of tools that an answer asks for; of those that are no JSON, the text."""
    return [*(getattr(message, "tool_calls", None) or []), *(getattr(message, "invalid_tool_calls", None) or [])]


def _call_part(call: Json) -> Json:
    return {
        "part_kind": "tool-call",
        "tool_name": call["name"],
        "args": jsonable(call["args"]),
        "tool_call_id": call["id"],
    }


def _said(content: Any) -> list[Json]:
    """Texts and thoughts; calls of tools stand in a list of their own, whatever the provider."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [part for block in blocks if (part := _part_of(block)) is not None]


def _part_of(block: Any) -> Json | None:
    if isinstance(block, str):
        return {"part_kind": "text", "content": block} if block else None
    if block.get("type") == "text":
        return {"part_kind": "text", "content": block["text"]} if block.get("text") else None
    if block.get("type") in ("thinking", "reasoning"):
        said = block.get("thinking") or block.get("reasoning") or ""
        return {"part_kind": "thinking", "content": said, "signature": block.get("signature")}
    return None


def text_of(content: Any) -> str:
    """All text in the content of a message."""
    if isinstance(content, str):
        return content
    blocks = (block if isinstance(block, str) else block.get("text") for block in content)
    return "".join(text for text in blocks if isinstance(text, str))


def prompt_of(content: Any) -> Any:
    """The content of a user's message: a text, or a list of texts and files."""
    if isinstance(content, str) or all(isinstance(block, str) or block.get("type") == "text" for block in content):
        return text_of(content)
    return [block if isinstance(block, str) else _file_or_text(block) for block in content]


def _file_or_text(block: Json) -> Any:
    if block.get("type") == "text":
        return block.get("text")
    image = block.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    return {"kind": "image-url", "url": url} if isinstance(url, str) else jsonable(block)
