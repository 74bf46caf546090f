"""Recorded messages as items of the Responses API: what the recorder made messages of, turned back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from replay_recorder.hooks.openai_agents_items import FAKE_ID
from replay_recorder.replaying.recording import Json

_LOCAL = ("computer", "local_shell", "shell", "apply_patch")
"""Calls with a type of their own that the team's process answers."""


def rows_of_messages(messages: Sequence[Json]) -> list[Json]:
    """The items that the recorder would read as these messages."""
    return [row for message in messages for row in rows_of_message(message)]


def rows_of_message(message: Json) -> list[Json]:
    rows: list[Json] = []
    for part in message.get("parts") or []:
        row = _ROWS[part["part_kind"]](part) if part["part_kind"] in _ROWS else None
        if row is None:
            raise ValueError(f"A recorded part of kind {part['part_kind']!r} cannot be given to the SDK again.")
        if rows and _are_one_message(rows[-1], row):
            rows[-1]["content"] += row["content"]
        else:
            rows.append(row)
    return rows


def _are_one_message(before: Json, row: Json) -> bool:
    """Texts with one id are the pieces of one message."""
    is_answer = before["type"] == row["type"] == "message" and before["role"] == row["role"] == "assistant"
    return bool(is_answer and before["id"] == row["id"] != FAKE_ID)


def _text(part: Json) -> Json:
    is_refusal = (part.get("provider_details") or {}).get("refusal")
    said = {"type": "output_text", "text": part["content"], "annotations": []}
    piece = {"type": "refusal", "refusal": part["content"]} if is_refusal else said
    return {
        "type": "message",
        "id": part.get("id") or FAKE_ID,
        "role": "assistant",
        "status": "completed",
        "content": [piece],
    }


def _thinking(part: Json) -> Json:
    said = [{"type": "summary_text", "text": part["content"]}] if part.get("content") else []
    signed = {"encrypted_content": part["signature"]} if part.get("signature") else {}
    return {"type": "reasoning", "id": part.get("id") or FAKE_ID, "summary": said, **signed}


def _call(part: Json) -> Json:
    name, sent, call_id = part["tool_name"], part.get("args"), part.get("tool_call_id")
    if isinstance(sent, dict) and name in _LOCAL:
        return {"type": f"{name}_call", "id": call_id, "call_id": call_id, **sent}
    if isinstance(sent, dict) and sent.keys() == {"input"}:
        return {"type": "custom_tool_call", "name": name, "call_id": call_id, **sent}
    arguments = sent if isinstance(sent, str) else json.dumps(sent or {})
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}


def _hosted(part: Json) -> Json:
    """Some kinds of calls that the provider answers end in `_call`, some do not."""
    name = part["tool_name"]
    kind = name if name.startswith("mcp_") or name == "compaction" else f"{name}_call"
    return {**(part.get("args") or {}), "type": kind, "id": part.get("tool_call_id")}


def _answer(part: Json) -> Json:
    return {"type": "function_call_output", "call_id": part.get("tool_call_id"), "output": part.get("content")}


def _prompt(part: Json) -> Json:
    content = part.get("content")
    said = content if isinstance(content, str) else list(_pieces(content))
    return {"type": "message", "role": "user", "content": said}


def _pieces(content: Any) -> Iterator[Json]:
    for piece in content or []:
        if isinstance(piece, str):
            yield {"type": "input_text", "text": piece}
        elif piece.get("kind") == "uploaded-file":
            yield {"type": "input_file", "file_id": piece["file_id"]}
        elif str(piece.get("media_type")).startswith("audio/"):
            sound = {"data": piece["data"], "format": piece["media_type"].removeprefix("audio/")}
            yield {"type": "input_audio", "input_audio": sound}
        else:
            link = piece.get("url") or f"data:{piece.get('media_type')};base64,{piece.get('data')}"
            is_image = piece.get("kind") == "image-url" or str(piece.get("media_type")).startswith("image/")
            yield {"type": "input_image", "image_url": link} if is_image else {"type": "input_file", "file_url": link}


def _system(part: Json) -> Json:
    return {"type": "message", "role": "system", "content": part.get("content")}


_ROWS: dict[str, Any] = {
    "text": _text,
    "thinking": _thinking,
    "tool-call": _call,
    "builtin-tool-call": _hosted,
    "tool-return": _answer,
    "user-prompt": _prompt,
    "system-prompt": _system,
}
