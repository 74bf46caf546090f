"""Failed runs by what failed: what is new or rising first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from sessions_app.models import Project, Run
from sessions_app.queries.failure_groups import AT, FailureGroup, grouped, groups_of

SHOWN = 12
_COUNTED = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class FailingNow:
    groups: list[FailureGroup]
    """What is new or rising first, then what failed last; at most `SHOWN`."""
    total: int
    fresh: int
    """How many of all are new or rising."""
    latest: Run | None
    """Of the runs of these groups, the one that began last."""


def failing_now(project: Project, now: datetime) -> FailingNow:
    """Four queries."""
    recorded = Run.objects.filter(project=project, origin="recorded")
    rows = list(grouped(recorded, now).order_by((F("today") - F("day_before")).desc(), "-last_at")[:_COUNTED])
    groups = groups_of(recorded, rows[:SHOWN], now)
    failed = recorded.filter(failure_group__in=[group.fingerprint for group in groups]).select_related("session")
    return FailingNow(
        groups=groups,
        total=len(rows),
        fresh=sum(row["today"] > row["day_before"] for row in rows),
        latest=failed.only("run_id", "session__session_id").order_by(AT.desc(), "-pk").first(),
    )
