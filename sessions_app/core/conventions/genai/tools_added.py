"""Tools that came later in a run: Pydantic AI keeps a part of its own for them, and sends it as words of the system."""

from __future__ import annotations

import re
from dataclasses import replace

from sessions_app.core.shared_values import once_each
from sessions_app.core.spans.reading import ChatMessage, OtherPart

_SENT = re.compile(r"The following tool\(s\) are now available: (`[^`]+`(?:, `[^`]+`)*)")
_QUOTED = re.compile(r"`([^`]+)`")


def with_tools_added(messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
    return tuple(_as_kept(message) if message.role == "system" else message for message in messages)


@once_each
def _as_kept(message: ChatMessage) -> ChatMessage:
    found = _SENT.fullmatch(message.words())
    if found is None:
        return message
    added = OtherPart(kind="tool-availability-delta", value={"tools_added": _QUOTED.findall(found[1])})
    return replace(message, parts=(added,))
