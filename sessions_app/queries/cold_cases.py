"""Runs that cannot be reproduced, grouped by what was missing, and what would have closed most of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations, groupby
from typing import Any

from django.db.models import QuerySet

from sessions_app.models import Project, Run
from sessions_app.queries.search import IS_COLD

MOST = 2000
"""Newest cold cases that are read for the board; more are counted as "newest 2,000"."""
SHOWN_IN_GROUP = 10
_FIELDS = (
    "run_id", "received_at", "started_at", "kit", "kit_lacks", "verdict_reasons", "input_preview", "error_preview",
    "verdict", "project", "session", "cold_case", "agent_name", "status",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingThing:
    """A line of the replay kit that cold cases lack."""

    key: str
    title: str
    fix: str | None
    code: str | None
    missing_in: int
    """How many of the cold cases lack it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheapestFixes:
    """The two kit lines that, captured, would have completed the most cold cases."""

    things: tuple[MissingThing, ...]
    completes: int
    """Cold cases that lack nothing else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ColdRun:
    run: Run
    missing: tuple[str, ...]

    @property
    def reason(self) -> str:
        """What a person said, else what the judge found."""
        if hasattr(self.run, "cold_case"):
            return str(self.run.cold_case.reason)
        found = [reason["message"] for reason in self.run.verdict_reasons]
        return str(found[0]) if found else "No reason was kept."


@dataclass(frozen=True, kw_only=True, slots=True)
class ColdGroup:
    """Cold cases that lack the same things."""

    things: tuple[MissingThing, ...]
    runs: list[ColdRun]
    """The newest ones."""
    count: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class ColdBoard:
    groups: list[ColdGroup]
    total: int
    is_cut: bool
    fixes: CheapestFixes


def cold_board(project: Project) -> ColdBoard:
    """Two queries for any number of cases."""
    read = list(cold_runs(project)[: MOST + 1])
    cases = [ColdRun(run=run, missing=missing_keys(run)) for run in read[:MOST]]
    titles = _lines(cases)
    counts = Counter(key for case in cases for key in case.missing)
    things = {
        key: MissingThing(key=key, title=line["title"], fix=line["fix"], code=line["code"], missing_in=counts[key])
        for key, line in titles.items()
    }
    return ColdBoard(
        groups=_groups(cases, things),
        total=len(cases),
        is_cut=len(read) > MOST,
        fixes=cheapest_fixes([case.missing for case in cases], things),
    )


def cold_runs(project: Project) -> QuerySet[Run]:
    runs = Run.objects.filter(IS_COLD, project=project, origin="recorded").only(*_FIELDS)
    return runs.select_related("session", "cold_case__marked_by").order_by("-pk")


def missing_keys(run: Run) -> tuple[str, ...]:
    """In the order of the kit. A mark keeps what was missing when it was made."""
    if hasattr(run, "cold_case"):
        return tuple(run.cold_case.missing)
    return tuple(run.kit_lacks)


def cheapest_fixes(missing: list[tuple[str, ...]], things: dict[str, MissingThing]) -> CheapestFixes:
    """Of all pairs the one that completes most cases; where none does, the things lacked most often."""
    most = sorted(things.values(), key=lambda thing: -thing.missing_in)
    pairs: list[tuple[MissingThing, ...]] = [*combinations(most, 2)] or [tuple(most)]
    best = max(pairs, key=lambda pair: (_completed(missing, pair), sum(thing.missing_in for thing in pair)))
    return CheapestFixes(things=best, completes=_completed(missing, best))


def _completed(missing: list[tuple[str, ...]], things: tuple[MissingThing, ...]) -> int:
    keys = {thing.key for thing in things}
    return sum(1 for lacking in missing if lacking and keys.issuperset(lacking))


def _lines(cases: list[ColdRun]) -> dict[str, Any]:
    """Title and fix of each missing line, as the newest case words them."""
    lines: dict[str, Any] = {}
    for case in cases:
        for line in case.run.kit.get("lines", []):
            if line["key"] in case.missing:
                lines.setdefault(line["key"], line)
        for key in case.missing:
            lines.setdefault(key, {"title": key.replace("_", " "), "fix": None, "code": None})
    return lines


def _groups(cases: list[ColdRun], things: dict[str, MissingThing]) -> list[ColdGroup]:
    by_missing = groupby(sorted(cases, key=lambda case: case.missing), key=lambda case: case.missing)
    groups = [_group([things[key] for key in missing], list(members)) for missing, members in by_missing]
    return sorted(groups, key=lambda group: (-group.count, -group.last_at.timestamp()))


def _group(things: list[MissingThing], members: list[ColdRun]) -> ColdGroup:
    times = [member.run.started_at or member.run.received_at for member in members]
    newest = sorted(members, key=lambda member: -member.run.pk)
    return ColdGroup(
        things=tuple(things),
        runs=newest[:SHOWN_IN_GROUP],
        count=len(members),
        first_at=min(times),
        last_at=max(times),
    )
