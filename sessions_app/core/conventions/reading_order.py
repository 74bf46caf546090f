"""A span may follow several conventions at once: their readings become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sessions_app.core.conventions import (
    genai,
    langfuse,
    langsmith,
    mlflow,
    openai_agents,
    openinference,
    plain_steps,
    provider_payload,
    traceloop,
    vercel,
)
from sessions_app.core.conventions.merging import merged
from sessions_app.core.conventions.raw_bodies import with_bodies
from sessions_app.core.spans.attributes import Read, error_of
from sessions_app.core.spans.reading import NOTHING, Reading
from sessions_app.core.spans.span import Span

READERS: tuple[tuple[Callable[[Span], Reading | None], tuple[str, ...]], ...] = (
    (openai_agents.read, ("openai_agents.",)),
    (provider_payload.read, ("provider.",)),
    (vercel.read, ("ai.",)),
    (openinference.read, ("openinference.", "llm.", "retrieval.", "reranker.", "embedding.")),
    (langfuse.read, ("langfuse.",)),
    (langsmith.read, ("langsmith.",)),
    (mlflow.read, ("mlflow.",)),
    (traceloop.read, ("traceloop.", "gen_ai.prompt.", "gen_ai.completion.", "llm.request.")),
    (genai.read, ("gen_ai.", "pydantic_ai.", "all_messages_events", "model_request_parameters", "events", "db.query.")),
    (plain_steps.read, ("run_id", "step_number", "tool_name")),
)
"""What was written for one product on purpose comes before what it passes on from others.

Each with beginnings of names, without any of which it has nothing to read: a name of an attribute, an event, a log
record or the scope."""
_LOOKED_FOR = tuple((read, tuple(f"\n{sign}" for sign in signs)) for read, signs in READERS)


def read_span(span: Span) -> Reading:
    """Field by field what the first convention says that says anything; where none knows it, what any span may say."""
    names = _names(span)
    readings = [
        reading
        for read, signs in _LOOKED_FOR
        if any(sign in names for sign in signs) and (reading := read(span)) is not None
    ]
    return with_bodies(merged(readings)) if readings else _plain(span)


def _names(span: Span) -> str:
    """Each after a line break, as one text, in which a beginning is found faster than in each name on its own."""
    events = [event.name for event in (*span.events, *span.logs)]
    return "\n".join(("", span.scope.name, *span.attributes, *events))


def _plain(span: Span) -> Reading:
    """What OpenTelemetry alone says: an error, and whom the work was for."""
    read = Read(span.attributes)
    session_id, user_id = read.text("session.id"), read.text("user.id", "enduser.id")
    return replace(NOTHING, error=error_of(span), session_id=session_id, user_id=user_id, used=frozenset(read.used))
