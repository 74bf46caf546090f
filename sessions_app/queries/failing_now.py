"""What fails now: runs that failed alike, whichever agent they are of, and what grew first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sessions_app.models import Project, Run
from sessions_app.queries.failure_groups import FailureGroup, grouped, groups_of, signs_in

SHOWN = 12
_COUNTED = 500
"""Groups with the latest failures."""
_DAY = timedelta(days=1)
_OF_SIGNS = ("status", "error_preview", "anomalies")


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """What went wrong alike in one agent or in several."""

    groups: tuple[FailureGroup, ...]
    """One for each agent, the one that failed last first."""
    is_cold: bool
    """Whether somebody marked the newest run of each as a cold case: it was looked at already."""

    @property
    def newest(self) -> FailureGroup:
        return self.groups[0]

    @property
    def told(self) -> str:
        return self.newest.told

    @property
    def count(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def today(self) -> int:
        return sum(group.today for group in self.groups)

    @property
    def first_at(self) -> datetime:
        return min(group.first_at for group in self.groups)

    @property
    def last_at(self) -> datetime:
        return self.newest.last_at

    @property
    def days(self) -> tuple[int, ...]:
        return tuple(map(sum, zip(*(group.days for group in self.groups), strict=True)))

    @property
    def agents(self) -> list[str | None]:
        return [group.newest.agent_name for group in self.groups]

    @property
    def versions(self) -> list[str]:
        return sorted({version for group in self.groups for version in group.versions})[:3]

    @property
    def query(self) -> str:
        """Of the list with its runs."""
        names = [group.fingerprint for group in self.groups]
        return f"group:{names[0]}" if len(names) == 1 else f"group:({' OR '.join(names)})"

    @property
    def is_new(self) -> bool:
        return self.today == self.count > 0

    @property
    def is_rising(self) -> bool:
        return not self.is_new and self.today > sum(group.day_before for group in self.groups)


@dataclass(frozen=True, kw_only=True, slots=True)
class FailingNow:
    failures: list[Failure]
    """What grew in the last 24 hours first, what was marked cold below the rest, failed runs above anomalies, and what
    grew more and later above the rest; then what else happened in them, then what failed last; at most `SHOWN`."""
    total: int
    today: int
    """How many of all happened in the last 24 hours."""

    @property
    def most(self) -> int:
        """Of one failure on one of the days."""
        return max((day for failure in self.failures for day in failure.days), default=0)

    @property
    def top(self) -> Run | None:
        """The newest run of the first failure."""
        return self.failures[0].newest.newest if self.failures else None


def failing_now(project: Project, now: datetime) -> FailingNow:
    """Four queries."""
    recorded = Run.objects.filter(project=project, origin="recorded")
    alike = _alike(list(grouped(recorded, now).order_by("-last_at", "-newest")[:_COUNTED]))
    ranked = sorted(alike, key=lambda rows: _place(rows, now))
    shown = ranked[:SHOWN]
    by_name = {group.fingerprint: group for group in groups_of(recorded, [row for rows in shown for row in rows], now)}
    return FailingNow(
        failures=[
            Failure(groups=tuple(by_name[row["failure_group"]] for row in rows), is_cold=_is_cold(rows))
            for rows in shown
        ],
        total=len(alike),
        today=sum(any(row["today"] for row in rows) for rows in alike),
    )


def _alike(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The groups whose newest runs went wrong alike, each time in their order. One query."""
    runs = Run.objects.select_related("cold_case").only(*_OF_SIGNS, "cold_case__id")
    newest = runs.in_bulk([row["newest"] for row in rows])
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["newest"] in newest:
            run = newest[row["newest"]]
            told = {"has_failed": run.status == "error", "is_cold": getattr(run, "cold_case", None) is not None}
            found.setdefault(signs_in(run), []).append(row | told)
    return list(found.values())


def _place(rows: Sequence[dict[str, Any]], now: datetime) -> tuple[bool, bool, bool, float, bool, float]:
    """Of what grew, runs that failed stand above runs with an anomaly, and growth counts less the longer ago it was;
    what happened today stands above what did not, also where it shrank."""
    last_at = rows[0]["last_at"]
    growth = max(_growth(rows), 0)
    weight = growth / (1 + max(now - last_at, timedelta(0)) / _DAY)
    is_of_today = any(row["today"] for row in rows)
    return not growth, _is_cold(rows), not rows[0]["has_failed"], -weight, not is_of_today, -last_at.timestamp()


def _is_cold(rows: Sequence[dict[str, Any]]) -> bool:
    return all(row["is_cold"] for row in rows)


def _growth(rows: Sequence[dict[str, Any]]) -> int:
    return sum(row["today"] - row["day_before"] for row in rows)
