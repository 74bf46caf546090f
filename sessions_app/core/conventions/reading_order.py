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
    provider_payload,
    traceloop,
    vercel,
)
from sessions_app.core.conventions.merging import merged
from sessions_app.core.conventions.raw_bodies import with_bodies
from sessions_app.core.spans.attributes import Read, error_of
from sessions_app.core.spans.reading import NOTHING, Reading
from sessions_app.core.spans.span import Span

READERS: tuple[Callable[[Span], Reading | None], ...] = (
    openai_agents.read,
    provider_payload.read,
    vercel.read,
    openinference.read,
    langfuse.read,
    langsmith.read,
    mlflow.read,
    traceloop.read,
    genai.read,
)
"""What was written for one product on purpose comes before what it passes on from others."""


def read_span(span: Span) -> Reading:
    """Field by field what the first convention says that says anything; where none knows it, what any span may say."""
    readings = [reading for read in READERS if (reading := read(span)) is not None]
    return with_bodies(merged(readings)) if readings else _plain(span)


def _plain(span: Span) -> Reading:
    """What OpenTelemetry alone says: an error, and whom the work was for."""
    read = Read(span.attributes)
    session_id, user_id = read.text("session.id"), read.text("user.id", "enduser.id")
    return replace(NOTHING, error=error_of(span), session_id=session_id, user_id=user_id, used=frozenset(read.used))
