"""Whose conversation a span belongs to, where teams say so in metadata of their own."""

from __future__ import annotations

from collections.abc import Mapping

from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.attributes import Read

SESSION = ("session_id", "sessionId", "session.id", "conversation_id", "conversationId", "thread_id", "threadId")
USER = ("user_id", "userId", "user.id")
TENANT = ("tenant_id", "tenantId", "tenant.id", "tenant")


def identifier(values: Mapping[str, JsonValue], names: tuple[str, ...]) -> str | None:
    """The first of these names that holds one."""
    return next((found for name in names if (found := as_identifier(values.get(name)))), None)


def attribute_identifier(read: Read, prefix: str, names: tuple[str, ...]) -> str | None:
    """Likewise of attributes, all with this prefix; those that were asked for count as understood."""
    return next((found for name in names if (found := as_identifier(read.raw(prefix + name)))), None)


def as_identifier(value: JsonValue) -> str | None:
    """A text that is not empty, or a whole number as text."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _HUGE:
        return str(value)
    return value if isinstance(value, str) and value else None


_HUGE = 10**40
"""Python refuses to write out numbers of thousands of digits."""
