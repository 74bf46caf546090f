"""Who speaks in a message: every framework's word for it in ours."""

from __future__ import annotations

from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.provider_messages.messages import ROLES
from sessions_app.core.spans.reading import ChatMessage, Role


def role_of(name: JsonValue, default: Role) -> Role:
    """The default for a role that is missing or that nobody here knows."""
    return ROLES.get(name.lower(), default) if isinstance(name, str) else default


def speaker_of(message: ChatMessage) -> str:
    """The role of a message; the word that stands for it there, where nobody here knows that."""
    spelled = message.spelled_role or message.role
    return message.role if spelled.lower() in ROLES else spelled
