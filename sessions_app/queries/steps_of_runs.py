"""The steps of many runs at once, for pages that add them up: their summaries alone, never their payloads."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.errors import StepMissing
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Project, Run, RunContent
from sessions_app.models.contents import find_parts
from sessions_app.queries.sessions import Span

MOST_RUNS = 2_000
"""The newest ones are read; a page says when there are more."""
_FIELDS = (
    "run_id", "agent_name", "model", "started_at", "received_at", "status", "anomalies", "session__session_id",
    "content__outline", "content__base", "content__base_steps", "content__first_piece", "content__first_node",
)  # fmt: skip


def recorded_runs(project: Project, span: Span, agent: str = "", most: int = MOST_RUNS) -> list[Run]:
    """Those of sessions in the time, newest first; one more than `most` where there are more. One query."""
    runs = Run.objects.filter(project=project, origin="recorded")
    if span.since is not None:
        runs = runs.filter(session__last_at__gte=span.since)
    if span.until is not None:
        runs = runs.filter(session__last_at__lt=span.until)
    if agent:
        runs = runs.filter(agent_name=agent)
    shown = runs.select_related("session", "content").only(*_FIELDS)
    return list(shown.order_by("-session__last_at", "-pk")[: most + 1])


def with_steps(runs: list[Run]) -> Iterator[tuple[Run, tuple[StepSummary, ...]]]:
    """Two queries more, however many of them go on from others. A run whose summaries are damaged has none."""
    find_parts([run.content for run in runs])
    shared = {part.content for run in runs if run.content.base_steps for part in run.content.parts[:-1]}
    holders = RunContent.objects.only("outline").in_bulk(list(shared)) if shared else {}
    for run in runs:
        try:
            yield run, _joined(run.content, holders)
        except StepMissing:
            yield run, ()


def _joined(content: RunContent, holders: dict[int, RunContent]) -> tuple[StepSummary, ...]:
    """Each part begins with as many steps of those before it as it says."""
    steps: tuple[StepSummary, ...] = ()
    for part in content.parts[:-1] if content.base_steps else ():
        steps = (*steps[: part.base_steps], *holders[part.content].own_steps)
    return (*steps[: content.base_steps], *content.own_steps)
