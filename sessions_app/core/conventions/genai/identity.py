"""Whose run a span belongs to: session, user, tenant, agent, framework."""

from __future__ import annotations

from sessions_app.core.conventions.genai.said import Said
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.attributes import as_text
from sessions_app.core.spans.reading import Reading
from sessions_app.core.spans.span import Scope

_SESSION = ("session_id", "sessionId", "session.id", "conversation_id", "conversationId", "thread_id", "threadId")
_USER = ("user_id", "userId", "user.id", "enduser.id")
_TENANT = ("tenant_id", "tenantId", "tenant.id")
_CONTEXT = "ai.settings.context."
"""What an application told its agent about the run."""
_PLACES: dict[tuple[str, ...], tuple[str, ...]] = {
    names: (*sorted(names, key=lambda name: "." not in name), *(_CONTEXT + name for name in names))
    for names in (_SESSION, _USER, _TENANT)
}
"""Attributes that may hold each, those with a dot first."""

_FRAMEWORKS = {
    "pydantic-ai": "pydantic-ai",
    "gcp.vertex.agent": "google-adk",
    "strands.telemetry.tracer": "strands-agents",
}
"""Frameworks that make their own spans: the scope's version is theirs. An instrumentation's version would not be."""


def add_identity(reading: Reading, said: Said, scope: Scope) -> None:
    """Names that an application chose come before `gen_ai.conversation.id`, which frameworks make up when they must."""
    reading.framework = _FRAMEWORKS.get(scope.name)
    reading.framework_version = scope.version or None if reading.framework else None
    reading.session_id = _named(said, _SESSION) or said.take(_as_id, "gen_ai.conversation.id")
    reading.user_id = _named(said, _USER)
    reading.tenant_id = _named(said, _TENANT)
    reading.agent_name = said.take(as_text, "gen_ai.agent.name", "agent_name")
    reading.agent_version = said.take(as_text, "gen_ai.agent.version")


def _named(said: Said, names: tuple[str, ...]) -> str | None:
    """By an attribute of its own, in the run's context, or in its metadata."""
    return said.take(_as_id, *_PLACES[names]) or _in_metadata(said, names)


def _in_metadata(said: Said, names: tuple[str, ...]) -> str | None:
    """Metadata that say more than who it was stay as they came too."""
    metadata = parsed(said.peek("metadata"))
    if not isinstance(metadata, dict):
        return None
    if metadata.keys() <= {*_SESSION, *_USER, *_TENANT}:
        said.raw("metadata")
    return next((found for name in names if (found := _as_id(metadata.get(name)))), None)


def _as_id(value: JsonValue) -> str | None:
    """A text or a whole number. Logfire writes over values that look like secrets, sessions among them."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64:
        return str(value)
    found = as_text(value)
    return None if found is None or found.startswith("[Scrubbed due to ") else found
