"""What a run was asked and what it answered, as a few lines that stand above its steps."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.base64_data import Folded, folded
from sessions_app.core.payload import Payload
from sessions_app.core.run import ErrorInfo
from sessions_app.queries.run_ends import RunEnds
from sessions_app.queries.steps import GonePayload
from sessions_app.web.render import spelled

CHARACTERS = 600
LINES = 3
INSTRUCTIONS = 4000
"""Characters of the instructions once they are opened; the whole is in the messages."""
READ_UP_TO = 256 * 1024
"""Longer documents are not read to be shortened: their beginning is shown as it was spelled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """The beginning of a value, and where the whole of it is."""

    label: str
    text: str | None = None
    """None when it was not captured."""
    is_cut: bool = False
    is_error: bool = False
    is_gone: bool = False
    is_awaited: bool = False
    """Whether the run goes on and may still give it."""
    is_lost: bool = False
    """Whether the recording breaks off before it."""
    folded: Folded | None = None
    digest: str = ""
    """Empty for an error: it is part of the header and has no address of its own."""
    size: int = 0
    fix: str = ""
    """How to capture it next time."""


def shown_ends(ends: RunEnds, status: str, *, characters: int = CHARACTERS, lines: int = LINES) -> tuple[End, ...]:
    """Asked, answered, and failed; the answer is left out where an error stands in its place. Of a run that did
    not end well the record holds an output, and nobody knows whether it answers."""
    found = [_of_payload("asked", ends.input, "send the run's input next time", characters, lines)]
    if ends.error is not None:
        found.append(_of_error(ends.error))
    if ends.output is not None or ends.error is None:
        found.append(_of_output(ends.output, status, characters, lines))
    return tuple(found)


def _of_output(output: Payload | None, status: str, characters: int, lines: int) -> End:
    if output is None and status == "running":
        return End(label="answer", is_awaited=True)
    if output is None and status == "cut_off":
        return End(label="answered", is_lost=True)
    label = "answered" if output is None or status in ("ok", "running") else "output"
    return _of_payload(label, output, "send the run's output when it ends", characters, lines)


def _of_payload(label: str, payload: Payload | None, fix: str, characters: int, lines: int) -> End:
    if payload is None:
        return End(label=label, fix=fix)
    if isinstance(payload, GonePayload):
        return End(label=label, digest=payload.digest, is_gone=True)
    text = _words(payload)
    found = folded(text) if text is not None else Folded(media_type=payload.media_type, size=payload.size)
    if text is None or found:
        return End(label=label, folded=found, digest=payload.digest, size=payload.size)
    head = beginning(text, characters, lines)
    return End(label=label, text=head, is_cut=len(head) < len(text), digest=payload.digest, size=payload.size)


def _words(payload: Payload) -> str | None:
    """A text itself, a value as compact JSON; None for bytes that are neither."""
    if payload.is_json:
        return _compact(payload)
    return payload.as_text() if payload.is_text else None


def _compact(payload: Payload) -> str:
    is_text = payload.content.startswith(b'"')
    value = spelled.read(payload.content) if is_text or payload.size <= READ_UP_TO else spelled.Unreadable("long")
    if isinstance(value, spelled.Unreadable):
        return payload.as_text()
    return str(value) if spelled.is_text(value) else spelled.compact(value)


def beginning(text: str, characters: int = CHARACTERS, lines: int = LINES) -> str:
    return "\n".join(text[:characters].split("\n")[:lines])


def _of_error(error: ErrorInfo) -> End:
    text = ": ".join(part for part in (error.type, error.message) if part)
    head = beginning(text)
    return End(label="failed", text=head or None, is_cut=len(head) < len(text), is_error=True, fix="send its message")


@dataclass(frozen=True, kw_only=True, slots=True)
class Instructions:
    """The system prompt of the first request."""

    text: str
    length: int

    @property
    def is_cut(self) -> bool:
        return len(self.text) < self.length


def shown_instructions(text: str | None) -> Instructions | None:
    if text is None:
        return None
    return Instructions(text=text[:INSTRUCTIONS], length=len(text))
