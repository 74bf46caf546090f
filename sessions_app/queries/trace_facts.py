"""What the header of a run says of the spans that it was made of, and traces of which no run could be made.

The facts stand among the unknown fields of the record, so a posted record may hold anything in their place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sessions_app.core.payload import JsonValue
from sessions_app.core.run import SPANS
from sessions_app.mapping.pieces import step_texts
from sessions_app.models import Project, Run, Trace
from sessions_app.models.traces import IS_BEHIND

_ENVIRONMENT = ("deployment.environment.name", "deployment.environment")
_TOPMOST_AMONG = 200
"""Steps that are looked at for a span without a parent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceFacts:
    """Where the spans of a run came from. None and empty: they do not say it."""

    spans: int | None
    not_understood: int | None
    """Attributes that no convention knows."""
    conventions: tuple[str, ...]
    scopes: tuple[str, ...]
    """Instrumentation libraries with their versions."""
    framework: str | None
    service: str | None
    environment: str | None
    has_topmost: bool
    """Whether the header holds a span that stands for the run and has no parent."""


def trace_facts(run: Run) -> TraceFacts | None:
    """None for a run that did not come as spans."""
    if run.source_format != SPANS:
        return None
    header = json.loads(run.content.intact_header)
    said, agent = _object(header.get("trace")), _object(header.get("agent"))
    resource, root = _object(said.get("resource")), _object(said.get("root"))
    framework = [_text(agent.get("framework")), _text(agent.get("framework_version"))]
    return TraceFacts(
        spans=_count(said.get("spans")),
        not_understood=_count(said.get("attributes_not_understood")),
        conventions=tuple(name for name in _object(said.get("conventions")) if name != "none"),
        scopes=_texts(said.get("scopes")),
        framework=" ".join(filter(None, framework)) or None,
        service=_text(resource.get("service.name")),
        environment=next((found for name in _ENVIRONMENT if (found := _text(resource.get(name)))), None),
        has_topmost=bool(root) and root.get("parent_id") is None,
    )


def has_topmost_span(run: Run, facts: TraceFacts) -> bool:
    """Whether a span without a parent is there, ended or not."""
    if facts.has_topmost:
        return True
    texts = step_texts(run.content, run.steps[:_TOPMOST_AMONG])
    spans = (_object(json.loads(text).get("span")) for text in texts)
    return any("span_id" in span and span.get("parent_id") is None for span in spans)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadTraces:
    """Traces that could not be made into runs."""

    count: int
    newest: list[Trace]

    @property
    def others(self) -> int:
        return self.count - len(self.newest)


def unread_traces(project: Project, limit: int) -> UnreadTraces | None:
    traces = Trace.objects.filter(project=project, problem__isnull=False).select_related("run__session")
    shown = traces.order_by("-changed_at", "-pk")
    newest = list(shown[: limit + 1])
    if not newest:
        return None
    count = traces.count() if len(newest) > limit else len(newest)
    return UnreadTraces(count=count, newest=newest[:limit])


def waiting_traces(project: Project, most: int) -> int:
    """How many have come of which no run was made so far; `most` when there are more."""
    waiting = Trace.objects.filter(IS_BEHIND, project=project, run=None, joined=None)
    return waiting[:most].count()


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, value))) if isinstance(value, list) else ()


def _count(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
