"""Runs that a run is worth comparing with: those that went well when they were asked for about the same, those that
failed alike and can be replayed, and where nothing is like it, other good runs of the agent."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from rapidfuzz import fuzz, process

from sessions_app.models import Run, Session

TWINS = 3
SESSIONS = 300
"""The newest of the project, among which runs are looked for."""
LIKENESS = 60
"""Of 100: below that two inputs have little more in common than the words of their trade."""
_FIELDS = (
    "run_id",
    "input_preview",
    "agent_version",
    "model",
    "step_count",
    "tool_call_count",
    "started_at",
    "project",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparable:
    """A run to compare another one with."""

    run: Run
    why: str
    differences: tuple[str, ...]
    """In words, as far as the rows of the two tell."""


def comparable_runs(run: Run) -> list[Comparable]:
    """Three queries at most; the most alike first."""
    good = _good_runs(run)
    twins = _twins(run, good)
    found = [(twin, "good run, similar input") for twin in twins]
    found += [(alike, "failed alike, replayable") for alike in _failed_alike(run)]
    if not twins:
        found += [(other, "good run of this agent") for other in _same_version_first(run, good)]
    return [Comparable(run=other, why=why, differences=differences(run, other)) for other, why in found]


def good_twins(run: Run) -> list[Run]:
    """Good runs with a similar input, the most alike first; one query."""
    return _twins(run, _good_runs(run))


def differences(run: Run, other: Run) -> tuple[str, ...]:
    """`version 1.5.0, here 1.4.0`, for each fact that both have and that differs."""
    pairs = {
        "version": (run.agent_version, other.agent_version),
        "model": (run.model, other.model),
        "tool calls": (run.tool_call_count, other.tool_call_count),
        "steps": (run.step_count, other.step_count),
    }
    return tuple(
        f"{name} {there}, here {here}" for name, (here, there) in pairs.items() if here and there and here != there
    )


def _good_runs(run: Run) -> QuerySet[Run]:
    """Of the same agent, without an error or an anomaly, newest first."""
    newest = Session.objects.filter(project=run.project_id).order_by("-last_at", "-id")[:SESSIONS]
    good = Run.objects.filter(session__in=newest.values("pk"), status="ok", origin="recorded", anomalies=[])
    return good.filter(agent_name=run.agent_name).exclude(session=run.session_id).only(*_FIELDS).order_by("-id")


def _twins(run: Run, good: QuerySet[Run]) -> list[Run]:
    if not run.input_preview:
        return []
    runs = {other.run_id: other for other in good}
    inputs = {run_id: other.input_preview for run_id, other in runs.items()}
    found = process.extract(run.input_preview, inputs, scorer=fuzz.token_sort_ratio, limit=TWINS, score_cutoff=LIKENESS)
    return [runs[run_id] for _, _, run_id in found]


def _failed_alike(run: Run) -> list[Run]:
    if not run.failure_group:
        return []
    alike = Run.objects.filter(project=run.project_id, failure_group=run.failure_group, origin="recorded")
    return list(alike.filter(verdict="replayable").exclude(pk=run.pk).only(*_FIELDS).order_by("-id")[:TWINS])


def _same_version_first(run: Run, good: QuerySet[Run]) -> list[Run]:
    others = good.alias(is_other=~Q(agent_version=run.agent_version))  # false sorts first
    return list(others.order_by("is_other", "-id")[:TWINS])
