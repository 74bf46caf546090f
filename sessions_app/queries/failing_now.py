"""Failed runs by what failed: how often, since when, and whether it gets more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Q

from sessions_app.models import Project, Run
from sessions_app.queries.failure_groups import AT, grouped, signs_in
from sessions_app.queries.sessions import HEAVY

DAYS = 14
"""Of the bars beside a group."""
SHOWN = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class FailingGroup:
    """Runs of one agent that failed the same way."""

    fingerprint: str
    newest: Run
    count: int
    today: int
    """Of the last 24 hours."""
    day_before: int
    first_at: datetime
    last_at: datetime
    versions: tuple[str, ...]
    """Of the agent, in the last days; at most three."""
    days: tuple[int, ...]
    """How often on each of the last days, today last."""

    @property
    def told(self) -> str:
        """What went wrong in the newest run: the error that ended it, or what went wrong although it ended well."""
        return self.newest.error_preview or " · ".join(signs_in(self.newest)) or self.newest.story

    @property
    def is_new(self) -> bool:
        return self.today == self.count > 0

    @property
    def is_rising(self) -> bool:
        return not self.is_new and self.today > self.day_before


def failing_now(project: Project, now: datetime) -> list[FailingGroup]:
    """Three queries: what is new or rising first, then what failed last; one more than `SHOWN` where there are more."""
    recorded = Run.objects.filter(project=project, origin="recorded")
    day = timedelta(days=1)
    today, before = Q(at__gt=now - day), Q(at__gt=now - 2 * day, at__lte=now - day)
    counted = grouped(recorded).annotate(today=Count("pk", filter=today), day_before=Count("pk", filter=before))
    rows = list(counted.order_by((F("today") - F("day_before")).desc(), "-last_at")[: SHOWN + 1])
    names = [row["failure_group"] for row in rows]
    newest = Run.objects.filter(pk__in=[row["newest"] for row in rows]).defer(*HEAVY).select_related("session")
    runs = {run.failure_group: run for run in newest}
    recent = recorded.annotate(at=AT).filter(failure_group__in=names, at__gt=now - DAYS * day)
    days, versions = _in_days(recent.values_list("failure_group", "at", "agent_version"), now)
    return [
        FailingGroup(
            fingerprint=name,
            newest=runs[name],
            count=row["count"],
            today=row["today"],
            day_before=row["day_before"],
            first_at=row["first_at"],
            last_at=row["last_at"],
            versions=tuple(sorted(versions[name]))[:3],
            days=tuple(days[name]),
        )
        for row in rows
        if (name := str(row["failure_group"])) in runs
    ]


def _in_days(
    found: Iterable[tuple[str | None, datetime, str | None]], now: datetime
) -> tuple[dict[str, list[int]], dict[str, set[str]]]:
    days: dict[str, list[int]] = defaultdict(lambda: [0] * DAYS)
    versions: dict[str, set[str]] = defaultdict(set)
    for name, at, version in found:
        ago = max((now - at) // timedelta(days=1), 0)
        days[str(name)][DAYS - 1 - ago] += 1
        versions[str(name)] |= {version} if version else set()
    return days, versions
