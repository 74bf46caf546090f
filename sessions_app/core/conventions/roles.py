"""Who speaks in a message: every framework's word for it in ours."""

from __future__ import annotations

from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.provider_messages.messages import ROLES
from sessions_app.core.spans.reading import Role


def role_of(name: JsonValue, default: Role) -> Role:
    """The default for a role that is missing or that nobody here knows."""
    return ROLES.get(name.lower(), default) if isinstance(name, str) else default
