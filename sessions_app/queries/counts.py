"""Numbers of a project for the outside: how many runs, replays and cold cases, and of which kind."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Min, Q, QuerySet
from django.utils import timezone

from sessions_app.models import ColdCase, Project, Replay, Run
from sessions_app.models.replays import ReplayState


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """A number, or one for each value of a label. Values come from closed lists, never from recordings."""

    name: str
    about: str
    label: str | None
    counts: tuple[tuple[str, float], ...]


def counted(project: Project) -> list[Counted]:
    """Five queries, whatever is stored."""
    runs = Run.objects.filter(project=project, origin="recorded")
    replays = Replay.objects.filter(project=project)
    cold = ColdCase.objects.filter(run__project=project).count()
    return [
        _by("replay_runs", "Recorded runs by status.", runs, "status"),
        _by("replay_runs_judged", "Recorded runs by verdict.", runs, "verdict"),
        _by("replay_replays", "Replays by state.", replays, "state"),
        Counted(name="replay_cold_cases", about="Runs marked as cold cases.", label=None, counts=(("", cold),)),
        _waiting(replays),
    ]


def _by(name: str, about: str, rows: QuerySet[Run] | QuerySet[Replay], label: str) -> Counted:
    found = rows.order_by().values_list(label).annotate(count=Count("pk")).order_by(label)
    return Counted(name=name, about=about, label=label, counts=tuple((str(value), count) for value, count in found))


def _waiting(replays: QuerySet[Replay]) -> Counted:
    oldest = replays.aggregate(at=Min("created_at", filter=Q(state=ReplayState.QUEUED)))["at"]
    seconds = (timezone.now() - oldest).total_seconds() if oldest else 0.0
    return Counted(
        name="replay_oldest_queued_seconds",
        about="How long the oldest queued replay has waited.",
        label=None,
        counts=(("", seconds),),
    )
