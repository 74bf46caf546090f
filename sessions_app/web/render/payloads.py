"""A payload as a page shows it: as a tree, as text, or as bytes, and never more than a part of a long one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sessions_app.core.base64_data import Folded, folded
from sessions_app.core.payload import BINARY, JSON, TEXT, Payload
from sessions_app.web.render import spelled
from sessions_app.web.render.tree import Node, build_tree

PART = 64 * 1024
"""Bytes of a long payload that are shown at once."""
TREE_UP_TO = 2 * 1024 * 1024
"""Larger documents are shown as text: drawing their tree would take seconds."""

Form = Literal["pretty", "json", "bytes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """One payload, ready for a template. Exactly one of `tree`, `text`, `rows`, `folded` is set."""

    digest: str
    size: int
    media_type: str
    form: Form
    tree: Node | None = None
    text: str | None = None
    rows: tuple[HexRow, ...] | None = None
    folded: Folded | None = None
    start: int = 0
    """First byte shown, when only a part is."""
    end: int = 0
    note: str = ""
    """Why it is not shown the way that was asked for."""

    @property
    def rest(self) -> int:
        return self.size - self.end

    @property
    def is_part(self) -> bool:
        return self.start > 0 or self.end < self.size


@dataclass(frozen=True, kw_only=True, slots=True)
class HexRow:
    """Sixteen bytes."""

    offset: str
    hex: str
    text: str


def show(payload: Payload, form: Form = "pretty", *, start: int = 0, nodes: int = 200) -> Shown:
    start = max(0, min(start, payload.size))
    if form == "bytes":
        return _bytes(payload, start)
    if form == "json" or start:
        return _text(payload, "json" if form == "json" else "pretty", start)
    return _pretty(payload, nodes)


def guess(content: bytes) -> Payload:
    """Stored bytes carry no media type of their own: JSON where it parses, else text, else bytes."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return Payload(content=content, media_type=BINARY)
    first = content.lstrip()[:1]
    if first in (b"{", b"[") and not isinstance(spelled.read(content), spelled.Unreadable):
        return Payload(content=content, media_type=JSON)
    return Payload(content=content, media_type=TEXT)


def _pretty(payload: Payload, nodes: int) -> Shown:
    if payload.size > TREE_UP_TO:
        return _text(payload, "pretty", 0, note="too large to draw as a tree")
    if not (payload.is_json or payload.is_text):
        return _binary(payload)
    text = payload.as_text()
    value = spelled.read(text) if payload.is_json else spelled.embedded(text)
    if isinstance(value, spelled.Unreadable):
        return _text(payload, "pretty", 0, note=value.reason)
    if spelled.is_text(value):
        return _whole_text(payload, value)
    tree = build_tree(value, nodes=nodes)
    note = "a text that holds JSON" if payload.is_text else ""
    return Shown(**_facts(payload), form="pretty", tree=tree, end=payload.size, note=note)  # type: ignore[arg-type]


def _whole_text(payload: Payload, text: str) -> Shown:
    found = folded(text)
    if found:
        return Shown(**_facts(payload), form="pretty", folded=found, end=payload.size)  # type: ignore[arg-type]
    if payload.is_json and payload.size <= PART:
        return Shown(**_facts(payload), form="pretty", text=text, end=payload.size)  # type: ignore[arg-type]
    return _text(payload, "pretty", 0)


def _text(payload: Payload, form: Form, start: int, note: str = "") -> Shown:
    start = _boundary(payload.content, start)
    end = _boundary(payload.content, start + PART)
    text = payload.content[start:end].decode("utf-8", errors="replace")
    return Shown(**_facts(payload), form=form, text=text, start=start, end=end, note=note)  # type: ignore[arg-type]


def _boundary(content: bytes, at: int) -> int:
    """Not inside a UTF-8 character."""
    at = min(at, len(content))
    for back in range(4):
        if at - back <= 0 or at == len(content) or content[at - back] & 0xC0 != 0x80:
            return max(at - back, 0)
    return at


def _binary(payload: Payload) -> Shown:
    return Shown(
        **_facts(payload),  # type: ignore[arg-type]
        form="pretty",
        folded=Folded(media_type=payload.media_type, size=payload.size),
        end=payload.size,
    )


HEX_PART = 4096


def _bytes(payload: Payload, start: int) -> Shown:
    start -= start % 16
    end = min(start + HEX_PART, payload.size)
    rows = tuple(_hex_row(payload.content[at : min(at + 16, end)], at) for at in range(start, end, 16))
    return Shown(**_facts(payload), form="bytes", rows=rows, start=start, end=end)  # type: ignore[arg-type]


def _hex_row(part: bytes, offset: int) -> HexRow:
    text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in part)
    return HexRow(offset=f"{offset:08x}", hex=part.hex(" "), text=text)


def _facts(payload: Payload) -> dict[str, str | int]:
    return {"digest": payload.digest, "size": payload.size, "media_type": payload.media_type}
