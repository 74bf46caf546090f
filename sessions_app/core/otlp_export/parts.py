"""Parts of messages: those of the record format as GenAI conventions write them, and back.

A part that GenAI knows is written in its words; fields that it has no words for stand in the part under `agent_replay`.
Other parts keep their fields under their own kind. Keys of objects may change their order, values never change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sessions_app.core.errors import RecordError
from sessions_app.core.payload import JsonObject, JsonValue

MARK = "agent_replay"
"""The key of what the conventions have no words for, in parts and messages alike."""

GenAiRole = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """How one kind of part is written."""

    type: str
    role: GenAiRole
    names: dict[str, str]
    """Name in the record to name in GenAI."""

    def fits(self, part: JsonObject) -> bool:
        """Conventions say that a text is a text; one that is anything else is written as an unknown part."""
        return "content" not in self.names.values() or isinstance(part.get("content"), str)


_CALL = {"tool_call_id": "id", "tool_name": "name", "args": "arguments"}
_ANSWER = {"tool_call_id": "id", "content": "response"}
_SAID = {"content": "content"}
_THOUGHT = {"content": "content", "id": "id", "signature": "signature"}
_TOLD = Form(type="text", role="user", names=_SAID)
_RETURNED = Form(type="tool_call_response", role="tool", names=_ANSWER)
FORMS: dict[str, Form] = {
    "system-prompt": Form(type="text", role="system", names=_SAID),
    "user-prompt": _TOLD,
    "retry-feedback": _TOLD,
    "tool-return": _RETURNED,
    "text": Form(type="text", role="assistant", names=_SAID),
    "thinking": Form(type="reasoning", role="assistant", names=_THOUGHT),
    "tool-call": Form(type="tool_call", role="assistant", names=_CALL),
}


def form_of(part: JsonObject) -> Form | None:
    """None for parts that the conventions have no words for."""
    kind = part.get("part_kind")
    form = FORMS.get(kind) if isinstance(kind, str) else None
    if kind == "retry-prompt":
        form = _RETURNED if part.get("tool_name") is not None else _TOLD
    return form if form is not None and form.fits(part) else None


def written_part(part: JsonObject, otherwise: GenAiRole) -> tuple[GenAiRole, list[JsonObject]]:
    """Role and parts in GenAI's words; `otherwise` is the role of parts that they do not know."""
    if part.get("part_kind") == "user-prompt" and isinstance(part.get("content"), list) and part["content"]:
        return "user", _written_items(part)
    form = form_of(part)
    if form is None:
        return otherwise, [_unknown(part)]
    named = {new: part[old] for old, new in form.names.items() if old in part}
    rest = {key: value for key, value in part.items() if key not in form.names}
    return form.role, [{"type": form.type, **named, MARK: {"part": rest}}]


def _unknown(part: JsonObject) -> JsonObject:
    """With the part's own fields, but for those that would be taken for ours."""
    kind = part.get("part_kind")
    kept_aside = {key: value for key, value in part.items() if key in ("type", "part_kind", MARK)}
    plain = {key: value for key, value in part.items() if key not in kept_aside}
    return {
        "type": kind if isinstance(kind, str) and kind else "unknown",
        **plain,
        MARK: {"part": kept_aside, "as": "is"},
    }


def read_parts(written: list[JsonObject]) -> list[JsonObject]:
    """The parts of the record; raises `RecordError` where these were not written by `written_part`."""
    parts, position = [], 0
    while position < len(written):
        ours = as_object(written[position].get(MARK))
        count = ours.get("items", 1)
        if not isinstance(count, int) or not 1 <= count <= len(written) - position:
            raise RecordError("An exported part names items that are not there.")
        parts.append(_read(written[position : position + count], ours))
        position += count
    return parts


def _read(written: list[JsonObject], ours: JsonObject) -> JsonObject:
    rest = as_object(ours.get("part"))
    if "items" in ours:
        return {"content": [_read_item(item) for item in written], **rest}
    if ours.get("as") == "is":
        return {**{key: value for key, value in written[0].items() if key not in ("type", MARK)}, **rest}
    names = _names_of(str(written[0].get("type")))
    return {**{old: written[0][new] for old, new in names.items() if new in written[0]}, **rest}


def _names_of(type_: str) -> dict[str, str]:
    return {"tool_call": _CALL, "tool_call_response": _ANSWER, "reasoning": _THOUGHT}.get(type_, _SAID)


# --- prompts of several items ------------------------------------------------------------------


def _written_items(part: JsonObject) -> list[JsonObject]:
    """A prompt of texts, images and files is one part of the record and several of GenAI."""
    items = [_written_item(item) for item in part["content"]]
    rest = {key: value for key, value in part.items() if key != "content"}
    items[0][MARK] = {**items[0].get(MARK, {}), "part": rest, "items": len(items)}
    return items


def _written_item(item: JsonValue) -> JsonObject:
    if isinstance(item, str):
        return {"type": "text", "content": item}
    kind = item.get("kind") if isinstance(item, dict) else None
    if isinstance(kind, str) and kind.endswith("-url") and isinstance(item.get("url"), str):
        rest = {key: value for key, value in item.items() if key != "url"}
        return {"type": "uri", "modality": kind.removesuffix("-url"), "uri": item["url"], MARK: {"item": rest}}
    if kind == "binary" and isinstance(item.get("data"), str) and isinstance(item.get("media_type"), str):
        rest = {key: value for key, value in item.items() if key not in ("data", "media_type")}
        media_type = item["media_type"]
        said = {"modality": media_type.partition("/")[0], "mime_type": media_type, "content": item["data"]}
        return {"type": "blob", **said, MARK: {"item": rest}}
    return {"type": kind if isinstance(kind, str) and kind else "unknown", "value": item, MARK: {"as": "is"}}


def _read_item(written: JsonObject) -> JsonValue:
    ours = as_object(written.get(MARK, {}))
    if ours.get("as") == "is":
        return written.get("value")
    if written.get("type") == "uri":
        return {"url": written.get("uri"), **as_object(ours.get("item"))}
    if written.get("type") == "blob":
        said = {"data": written.get("content"), "media_type": written.get("mime_type")}
        return {**said, **as_object(ours.get("item"))}
    return written.get("content")


def as_object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise RecordError("An exported message holds something else than an object.")
    return value
