"""The Vercel AI SDK's own attributes, `ai.*`.

Versions 5 and 6 say everything with them; version 7 follows OpenTelemetry and adds the application's context
(`ai.settings.context.*`). Source: https://ai-sdk.dev/docs/ai-sdk-core/telemetry

| attribute | holds |
| --- | --- |
| `ai.operationId` | `ai.generateText`, around the whole run; `ai.generateText.doGenerate`, one call of a model |
| `ai.prompt`, `ai.prompt.messages`, `ai.prompt.tools` | JSON text; the tools are a list of JSON texts |
| `ai.response.*`, `ai.usage.*`, `ai.settings.*` | answer, token counts, settings |
| `ai.toolCall.*` | a tool's name, id, arguments and result, the last two as JSON text |
| `ai.telemetry.functionId`, `ai.telemetry.metadata.*` | what the application calls itself, and what it adds |

A span around a whole run counts the tokens of all its model calls, or of the last, once more; they are not read.
"""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.core.conventions.owners import SESSION, TENANT, USER, as_identifier
from sessions_app.core.conventions.vercel.model import CONVENTION, agent_reading, model_reading
from sessions_app.core.embedded_json import parsed
from sessions_app.core.spans.attributes import Read, error_of
from sessions_app.core.spans.reading import Reading, ReadingKind
from sessions_app.core.spans.span import Span

_OWN = ("ai.settings.", "ai.telemetry.", "ai.prompt", "ai.response.", "ai.usage.", "ai.toolCall.")
_CONTEXTS = ("ai.telemetry.metadata.", "ai.settings.context.")


def read(span: Span) -> Reading | None:
    """What the SDK says of the span, or None when it says nothing."""
    said = Read(span.attributes)
    operation = said.text("ai.operationId")
    if operation is None and not any(name.startswith(_OWN) for name in said.names()):
        return None
    kind = _kind(operation)
    reading = _READERS.get(kind or "", _nothing)(said, span)
    reading.kind = kind
    reading.agent_name = said.text("ai.telemetry.functionId")
    reading.name = reading.agent_name if kind == "agent" else None
    reading.framework = CONVENTION
    reading.framework_version = _version(said)
    reading.session_id = _owner(said, SESSION)
    reading.user_id = _owner(said, USER)
    reading.tenant_id = _owner(said, TENANT)
    reading.error = error_of(span)
    # These two say the operation and the function's name once more.
    said.raw("operation.name", "resource.name")
    reading.used = frozenset(said.used)
    return reading


def _kind(operation: str | None) -> ReadingKind | None:
    if operation is None:
        return None
    last = operation.rpartition(".")[2]
    return _KINDS.get(last) or ("agent" if last.startswith(("generate", "stream")) else "chain")


_KINDS: dict[str, ReadingKind] = {
    "doGenerate": "model",
    "doStream": "model",
    "doEmbed": "embedding",
    "toolCall": "tool",
}


def _owner(said: Read, names: tuple[str, ...]) -> str | None:
    full = (context + name for name in names for context in _CONTEXTS)
    return next((found for name in full if said.has(name) and (found := as_identifier(said.raw(name)))), None)


def _version(said: Read) -> str | None:
    """From `ai/5.0.277`, which the SDK adds to the headers of requests."""
    agents = (said.text("ai.request.headers.user-agent") or "").split()
    return next((agent[3:] for agent in agents if agent.startswith("ai/") and len(agent) > 3), None)


def _nothing(said: Read, span: Span) -> Reading:
    return Reading(convention=CONVENTION)


def _tool(said: Read, span: Span) -> Reading:
    return Reading(
        convention=CONVENTION,
        tool_name=said.text("ai.toolCall.name"),
        call_id=said.text("ai.toolCall.id"),
        arguments=said.json("ai.toolCall.args"),
        has_arguments=said.has("ai.toolCall.args"),
        result=said.json("ai.toolCall.result"),
        has_result=said.has("ai.toolCall.result"),
    )


def _embedding(said: Read, span: Span) -> Reading:
    model = said.text("ai.model.id")
    query = said.json("ai.value")
    if query is None and (texts := said.list("ai.values")) is not None:
        query = [parsed(text) for text in texts]
    return Reading(
        convention=CONVENTION,
        model=model,
        embedding_model=model,
        query=query,
        input_tokens=said.count("ai.usage.tokens"),
    )


_READERS: dict[str, Callable[[Read, Span], Reading]] = {
    "model": model_reading,
    "agent": agent_reading,
    "tool": _tool,
    "embedding": _embedding,
}
