"""A span may follow several conventions at once: their readings become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

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
_TOGETHER = {"result": "has_result", "arguments": "has_arguments"}
"""A value, and whether it was captured."""
_APART = {"convention", "used", *_TOGETHER, *_TOGETHER.values()}
_ALONE = tuple(each.name for each in fields(Reading) if each.name not in _APART)


def read_span(span: Span) -> Reading:
    """Field by field what the first convention says that says anything; `NOTHING` where none knows the span."""
    readings = [reading for read in READERS if (reading := read(span)) is not None]
    return merged(readings) if readings else NOTHING


def merged(readings: Sequence[Reading]) -> Reading:
    """The first one, with its gaps filled by the others in their order."""
    first, *others = readings
    for other in others:
        gaps = {name: getattr(other, name) for name in _ALONE if not _is_said(getattr(first, name))}
        for name, captured in _TOGETHER.items():
            if not getattr(first, captured):
                gaps |= {name: getattr(other, name), captured: getattr(other, captured)}
        first = replace(first, used=first.used | other.used, **gaps)
    return first


def _is_said(value: object) -> bool:
    return value is not None and value is not False
