"""Numbers of a project for the outside: how many runs, replays and cold cases, of which kind, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, DurationField, ExpressionWrapper, F, Min, Q, QuerySet, Sum
from django.utils import timezone

from sessions_app.models import ColdCase, Project, Replay, Run
from sessions_app.models.replays import ReplayState

SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Upper ends of what durations are counted by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """A number, or one for each value of a label. Values come from closed lists, never from recordings."""

    name: str
    about: str
    label: str | None
    counts: tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lasted:
    """How many took how long: `up_to[i]` took no longer than `SECONDS[i]`, of `count` in all, which took `seconds`."""

    name: str
    about: str
    up_to: tuple[int, ...]
    count: int
    seconds: float


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
        _oldest(replays),
    ]


def lasted(project: Project) -> list[Lasted]:
    """Two queries."""
    replays = Replay.objects.filter(project=project)
    return [
        _lasted("replay_queued_seconds", "From order to start.", replays, "created_at", "claimed_at"),
        _lasted("replay_run_seconds", "From start to end, stops included.", replays, "claimed_at", "finished_at"),
    ]


def _by(name: str, about: str, rows: QuerySet[Run] | QuerySet[Replay], label: str) -> Counted:
    found = rows.order_by().values_list(label).annotate(count=Count("pk")).order_by(label)
    return Counted(name=name, about=about, label=label, counts=tuple((str(value), count) for value, count in found))


def _oldest(replays: QuerySet[Replay]) -> Counted:
    oldest = replays.aggregate(at=Min("created_at", filter=Q(state=ReplayState.QUEUED)))["at"]
    seconds = (timezone.now() - oldest).total_seconds() if oldest else 0.0
    return Counted(
        name="replay_oldest_queued_seconds",
        about="How long the oldest queued replay has waited.",
        label=None,
        counts=(("", seconds),),
    )


def _lasted(name: str, about: str, replays: QuerySet[Replay], begin: str, end: str) -> Lasted:
    took = ExpressionWrapper(F(end) - F(begin), output_field=DurationField())
    up_to = {f"up_to_{each}": Count("pk", filter=Q(took__lte=timedelta(seconds=each))) for each in SECONDS}
    found = (
        replays.annotate(took=took).filter(took__isnull=False).aggregate(count=Count("pk"), total=Sum("took"), **up_to)
    )
    return Lasted(
        name=name,
        about=about,
        up_to=tuple(found[name] for name in up_to),
        count=found["count"],
        seconds=(found["total"] or timedelta()).total_seconds(),
    )
