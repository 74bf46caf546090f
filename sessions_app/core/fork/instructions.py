"""The instructions of a request to the model, and other ones in their place.

The request carries them, or else its system prompts are them.
"""

from __future__ import annotations

from sessions_app.core.history import History, nodes
from sessions_app.core.judge.reading import as_object, objects_in
from sessions_app.core.payload import JsonValue


def carried_instructions(message: JsonValue) -> str | None:
    """Those that the newest message of a request carries."""
    said = as_object(message).get("instructions")
    return said if isinstance(said, str) else None


class Instructions:
    """Of the requests of one run, which share their messages: each is read once."""

    def __init__(self) -> None:
        self._prompts: dict[str, tuple[str, ...]] = {}

    def of(self, history: History) -> str | None:
        carried = carried_instructions(history.message.value)
        return carried if carried is not None else "\n\n".join(self._prompts_of(history)) or None

    def _prompts_of(self, history: History) -> tuple[str, ...]:
        unread = []
        for node in nodes(history):
            if node.digest in self._prompts:
                break
            unread.append(node)
        for node in reversed(unread):
            before = self._prompts[node.parent.digest] if node.parent else ()
            self._prompts[node.digest] = (*before, *system_prompts(node.message.value))
        return self._prompts[history.digest]


def system_prompts(message: JsonValue) -> list[str]:
    parts = objects_in(as_object(message).get("parts"))
    return [str(part.get("content")) for part in parts if part.get("part_kind") == "system-prompt"]
