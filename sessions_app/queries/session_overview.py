"""The sessions of a list at a glance: how many in time by outcome, and how often each value of a field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from sessions_app.core.search.query import Query
from sessions_app.models import Project, Run
from sessions_app.queries.failure_groups import told_of
from sessions_app.queries.search import READINESS, matching_runs
from sessions_app.queries.sessions import Span

MOST = 5_000
"""Runs that are read, the newest ones; a page says when there are more."""
BARS = 60
OUTCOMES = ("ok", "error", "cut_off", "running")
KEPT = 30
"""Values of a field."""


class _Seen(NamedTuple):
    """A run that matches."""

    run: int
    session: int
    at: datetime
    status: str
    verdict: str
    cold_case: int | None
    agent: str | None
    version: str | None
    model: str | None
    tenant: str | None
    tools: list[str]
    group: str | None
    tags: list[str]
    parent: str | None

    @property
    def is_cold(self) -> bool:
        """As `IS_COLD`."""
        return self.cold_case is not None or (self.verdict == "cold" and self.status != "running")

    @property
    def readiness(self) -> str | None:
        """As queries with `replay:` find it."""
        if self.is_cold:
            return "cold"
        return None if self.status == "running" else _READINESS.get(self.verdict)


_COLUMNS = (
    "pk", "session", "session__last_at", "status", "verdict", "cold_case__pk", "agent_name", "agent_version", "model",
    "tenant_id", "tool_names", "failure_group", "session__tags", "parent_run_id",
)  # fmt: skip
_READINESS = {verdict: name for name, verdict in READINESS.items()}


@dataclass(slots=True)
class TimeBar:
    begins: datetime
    ends: datetime
    outcomes: Counter[str] = field(default_factory=Counter)
    cold: int = 0

    @property
    def count(self) -> int:
        return self.outcomes.total()


@dataclass(frozen=True, kw_only=True, slots=True)
class Facet:
    """A key of queries, and its values with how many sessions have each; the most frequent first."""

    key: str
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    bars: tuple[TimeBar, ...]
    facets: tuple[Facet, ...]
    sessions: int
    older: int
    """Sessions from before the first bar."""
    is_cut: bool
    """Whether there are older ones that were not read."""
    errors: dict[str, str]
    """What went wrong, by failure group: in the newest run of each that is counted."""


def session_overview(project: Project, query: Query, span: Span, now: datetime) -> Overview:
    """Two queries; linear in what is read."""
    runs = matching_runs(Run.objects.filter(project=project), query)
    if span.since is not None:
        runs = runs.filter(session__last_at__gte=span.since)
    if span.until is not None:
        runs = runs.filter(session__last_at__lt=span.until)
    rows = list(runs.order_by("-pk").values_list(*_COLUMNS)[: MOST + 1])
    read = [_Seen(*row) for row in rows[:MOST]]
    seen = _shown(read)
    is_cut = len(rows) > MOST
    facets = tuple(Facet(key=key, counts=_counts(read, values)) for key, values in _FACETS.items())
    bars = _bars(seen, span if not is_cut else Span(until=span.until), now)
    return Overview(
        bars=bars,
        facets=facets,
        sessions=len(seen),
        older=len(seen) - sum(bar.count for bar in bars),
        is_cut=is_cut,
        errors=_errors(read, facets),
    )


def _shown(read: list[_Seen]) -> list[_Seen]:
    """Of each session the run that its row shows."""
    shown: dict[int, _Seen] = {}
    for one in sorted(read, key=lambda one: one.parent is not None):
        shown.setdefault(one.session, one)
    return sorted(shown.values(), key=lambda one: -one.run)


def _bars(seen: list[_Seen], span: Span, now: datetime) -> tuple[TimeBar, ...]:
    """Over the time that was chosen, else over that of what was found."""
    if not seen:
        return ()
    times = sorted(one.at for one in seen)
    last = span.until or max(now, times[0])
    first = span.since or _begin(times, last)
    length = max((last - first) / BARS, datetime.resolution)
    bars = tuple(TimeBar(first + number * length, first + (number + 1) * length) for number in range(BARS))
    for one in seen:
        if one.at < first:
            continue
        bar = bars[min(max(int((one.at - first) / length), 0), BARS - 1)]
        bar.outcomes[one.status] += 1
        bar.cold += one.is_cold
    return bars


def _begin(times: list[datetime], last: datetime) -> datetime:
    """A few sessions that are much older than all others do not squeeze these into the last bars."""
    few = max(len(times) // 20, min(len(times) // 4, 1))
    return times[few] if (last - times[few]) * 2 < last - times[0] else times[0]


_FACETS: dict[str, Callable[[_Seen], Iterable[str | None]]] = {
    "status": lambda one: (one.status,),
    "replay": lambda one: (one.readiness,),
    "group": lambda one: (one.group,),
    "tag": lambda one: one.tags,
    "tool": lambda one: one.tools,
    "agent": lambda one: (one.agent,),
    "version": lambda one: (one.version,),
    "model": lambda one: (one.model,),
    "tenant": lambda one: (one.tenant,),
}


def _errors(read: list[_Seen], facets: Iterable[Facet]) -> dict[str, str]:
    """Of each group; agents that fail alike are told apart."""
    shown = {value for facet in facets if facet.key == "group" for value, _ in facet.counts}
    newest = {one.group: one.run for one in reversed(read) if one.group in shown}
    columns = ("failure_group", "agent_name", "error_preview", "anomalies", "story")
    runs = Run.objects.only(*columns).filter(pk__in=newest.values())
    told = {str(run.failure_group): (told_of(run), run.agent_name) for run in runs}
    often = Counter(words for words, _ in told.values())
    return {name: f"{agent}: {words}" if agent and often[words] > 1 else words for name, (words, agent) in told.items()}


def _counts(read: list[_Seen], values: Callable[[_Seen], Iterable[str | None]]) -> tuple[tuple[str, int], ...]:
    """Sessions of which any run has the value: as many as the list has that is narrowed to it."""
    pairs = {(one.session, value) for one in read for value in values(one) if value}
    counts = Counter(value for _, value in pairs)
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:KEPT])
