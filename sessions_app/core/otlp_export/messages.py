"""Messages of the record format as the GenAI conventions write them, and back.

One message of the record may be several here, as GenAI has a role for each: system, user, assistant, tool. The first of
them carries under `agent_replay` what the record's message has beside its parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from sessions_app.core.errors import RecordError
from sessions_app.core.history import History, messages
from sessions_app.core.otlp_export.parts import MARK, GenAiRole, as_object, read_parts, written_part
from sessions_app.core.payload import JsonObject, JsonValue, Payload, compact_json


class MessageWriter:
    """Writes the messages of one run, each only once: histories share their beginnings."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def texts(self, history: History | None) -> list[bytes]:
        """JSON text of each message of the history; several GenAI messages stand with commas between."""
        return [self._text(message) for message in messages(history)]

    def _text(self, message: Payload) -> bytes:
        known = self._known.get(message.digest)
        if known is None:
            known = self._known[message.digest] = b",".join(map(compact_json, written_message(message.value)))
        return known


def written_message(message: JsonValue, *, finish_reason: str | None = None) -> list[JsonObject]:
    """GenAI messages that say the same; `finish_reason` is that of an answer."""
    if not _has_parts(message):
        role: GenAiRole = "user" if finish_reason is None else "assistant"
        return [_with_reason({"role": role, "parts": [], MARK: {"whole": message}}, finish_reason)]
    role = "assistant" if message.get("kind") == "response" else "user"
    sided = [written_part(part, role) for part in message["parts"]]
    said: list[JsonObject] = [
        {"role": side, "parts": [part for _, parts in group for part in parts]}
        for side, group in groupby(sided, key=lambda pair: pair[0])
    ] or [{"role": role, "parts": []}]
    said[0] |= {MARK: {"message": {key: value for key, value in message.items() if key != "parts"}}}
    return [_with_reason(each, finish_reason) for each in said]


def _has_parts(message: JsonValue) -> bool:
    parts = message.get("parts") if isinstance(message, dict) else None
    return isinstance(parts, list) and all(isinstance(part, dict) for part in parts)


def _with_reason(message: JsonObject, finish_reason: str | None) -> JsonObject:
    return message if finish_reason is None else {**message, "finish_reason": finish_reason}


def read_messages(written: JsonValue) -> list[bytes]:
    """JSON texts of the record's messages; raises `RecordError` where these are none that we wrote."""
    if not isinstance(written, list):
        raise RecordError("Exported messages are not a list.")
    return [_read(group) for group in _groups(map(as_object, written))]


def _groups(written: Iterable[JsonObject]) -> list[list[JsonObject]]:
    """Each begins with a message that carries ours."""
    groups: list[list[JsonObject]] = []
    for message in written:
        if MARK in message:
            groups.append([message])
        elif groups:
            groups[-1].append(message)
        else:
            raise RecordError("An exported conversation does not begin with a message of ours.")
    return groups


def _read(group: list[JsonObject]) -> bytes:
    ours = as_object(group[0][MARK])
    if "whole" in ours:
        return compact_json(ours["whole"])
    parts = [as_object(part) for message in group for part in _parts(message)]
    return compact_json({"parts": read_parts(parts), **as_object(ours.get("message"))})


def _parts(message: JsonObject) -> list[JsonValue]:
    parts = message.get("parts")
    if not isinstance(parts, list):
        raise RecordError("An exported message has no parts.")
    return parts


def instructions_in(history: History | None) -> str | None:
    """The system prompt that stands apart from the parts, in the newest message."""
    value = history.message.value if history else None
    said = value.get("instructions") if isinstance(value, dict) else None
    return said if isinstance(said, str) else None
