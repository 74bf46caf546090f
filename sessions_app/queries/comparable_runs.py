"""Runs that a run is worth comparing with: those of the same agent that ended well, the most alike input first, and
those that failed alike and can be replayed."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet
from rapidfuzz import fuzz
from rapidfuzz.utils import default_process

from sessions_app.models import Run, Session

MOST = 8
"""Runs of the agent that ended well."""
ASKED_OTHERWISE = 3
"""Of these where none was asked alike."""
FAILED_ALIKE = 3
SESSIONS = 300
"""The newest of the project, among which runs are looked for."""
LIKENESS = 60
"""Of 100: below that two inputs have little more in common than the words of their trade."""
_FIELDS = (
    "run_id",
    "input_preview",
    "output_preview",
    "error_preview",
    "agent_version",
    "model",
    "step_count",
    "tool_call_count",
    "started_at",
    "anomalies",
    "project",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparable:
    """A run to compare another one with."""

    run: Run
    why: str
    differences: tuple[str, ...]
    """In words, as far as the rows of the two tell."""
    is_good: bool
    """Whether it ended well and nothing in it casts doubt on its answer."""
    is_alike: bool
    """Whether it was asked something similar, or failed the same way."""


def comparable_runs(run: Run) -> list[Comparable]:
    """Two queries; those asked the same first, and of those equally alike one without an anomaly and the newest."""
    ended_well = sorted(_ended_well(run), key=lambda other: (-_likeness(run, other), bool(other.anomalies)))
    alike = [other for other in ended_well if _likeness(run, other) >= LIKENESS]
    good = [(other, _question(run, other), True, bool(alike)) for other in alike[:MOST] or ended_well[:ASKED_OTHERWISE]]
    failed = [(other, "failed the same way, replayable", False, True) for other in _replayable(failed_alike(run))]
    return [
        Comparable(run=other, why=why, differences=differences(run, other), is_good=is_good, is_alike=is_alike)
        for other, why, is_good, is_alike in [*good, *failed]
    ]


def good_twins(run: Run) -> list[Run]:
    """Runs with a similar input that ended well and without an anomaly, the most alike first; one query."""
    alike = [other for other in _ended_well(run) if not other.anomalies and _likeness(run, other) >= LIKENESS]
    return sorted(alike, key=lambda other: -_likeness(run, other))


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


def _ended_well(run: Run) -> list[Run]:
    """Of the same agent, newest first; without those whose answer may be wrong."""
    newest = Session.objects.filter(project=run.project_id).order_by("-last_at", "-id")[:SESSIONS]
    well = Run.objects.filter(session__in=newest.values("pk"), status="ok", origin="recorded")
    found = well.filter(agent_name=run.agent_name).exclude(session=run.session_id).only(*_FIELDS).order_by("-id")
    return [other for other in found if not any(anomaly.is_doubt for anomaly in other.foremost_anomalies)]


def _likeness(run: Run, other: Run) -> float:
    """Of the two inputs, from 0 to 100."""
    asked, there = run.input_preview, other.input_preview
    return fuzz.token_sort_ratio(asked, there, processor=default_process) if asked and there else 0


def _question(run: Run, other: Run) -> str:
    if run.input_preview and run.input_preview == other.input_preview:
        return "ended well, same question"
    is_alike = _likeness(run, other) >= LIKENESS
    return "ended well, similar question" if is_alike else "ended well, different question"


def failed_alike(run: Run) -> QuerySet[Run]:
    """The others of its failure group."""
    if not run.failure_group:
        return Run.objects.none()
    alike = Run.objects.filter(project=run.project_id, failure_group=run.failure_group, origin="recorded")
    return alike.exclude(pk=run.pk)


def _replayable(alike: QuerySet[Run]) -> QuerySet[Run]:
    """The newest."""
    return alike.filter(verdict="replayable").only(*_FIELDS).order_by("-id")[:FAILED_ALIKE]
