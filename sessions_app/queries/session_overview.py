"""The sessions of a list at a glance: how many in time by outcome, and how often each value of a field."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from django.db.models import Case, Field, Func, TextField, Value, When

from sessions_app.core.failures import without_values
from sessions_app.core.search.query import Query
from sessions_app.models import Project, Run
from sessions_app.queries.failure_groups import told_of
from sessions_app.queries.search import REPLAY, matching_runs
from sessions_app.queries.sessions import Span

MOST = 5_000
"""Runs that are read, the newest ones; a page says when there are more."""
BARS = 60
OUTCOMES = ("ok", "error", "cut_off", "running")
KEPT = 30
"""Values of a field."""


class _Seen(NamedTuple):
    """A run that matches. What is counted of it is named as in queries."""

    run: int
    session: int
    at: float
    """When the newest run of the session started, in seconds since the epoch."""
    parent: str | None
    status: str
    replay: str | None
    group: str | None
    tag: str
    """Any number of them, as JSON."""
    tool: str
    """Likewise."""
    agent: str | None
    version: str | None
    model: str | None
    tenant: str | None


_FACETS = ("status", "replay", "group", "tag", "tool", "agent", "version", "model", "tenant")
_LISTS = ("tag", "tool")


def _as_json(column: str) -> Func:
    return Func(column, template="array_to_json(%(expressions)s)::text", output_field=TextField())


# Thousands of runs are read. Making times and lists of what they hold would take longer than everything else, so these
# come as numbers and as texts, of which only the distinct ones are parsed. A plain `Field` converts nothing.
_COLUMNS = (
    "pk", "session", Func(Value("epoch"), "session__last_at", function="date_part", output_field=Field()),
    "parent_run_id", "status", Case(*(When(condition, then=Value(name)) for name, condition in REPLAY.items())),
    "failure_group", _as_json("session__tags"), _as_json("tool_names"), "agent_name", "agent_version", "model",
    "tenant_id",
)  # fmt: skip


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
    errors: dict[str, tuple[str, str]]
    """What went wrong, by failure group, as `FailureGroup.told` has it of those that are counted; and of which agent,
    where several failed alike."""


def session_overview(project: Project, query: Query, span: Span, now: datetime) -> Overview:
    """Two queries; linear in what is read."""
    runs = matching_runs(Run.objects.filter(project=project), query)
    if span.since is not None:
        runs = runs.filter(session__last_at__gte=span.since)
    if span.until is not None:
        runs = runs.filter(session__last_at__lt=span.until)
    rows = list(runs.order_by("-pk").values_list(*_COLUMNS)[: MOST + 1])
    read = [_Seen._make(row) for row in rows[:MOST]]
    shown = _shown(read)
    is_cut = len(rows) > MOST
    bars = _bars(shown, span if not is_cut else Span(until=span.until), now)
    facets = tuple(Facet(key=key, counts=_counts(read, key)) for key in _FACETS)
    return Overview(
        bars=bars,
        facets=facets,
        sessions=len(shown),
        older=len(shown) - sum(bar.count for bar in bars),
        is_cut=is_cut,
        errors=_errors(read, facets),
    )


def _shown(read: list[_Seen]) -> Collection[_Seen]:
    """Of each session the run that its row shows: of those that no other run called, else of all, the first that went
    wrong, else the newest."""
    found: dict[int, _Seen] = {}
    for called in (True, False):
        of_kind = [one for one in read if (one.parent is not None) is called]
        found |= {one.session: one for one in reversed(of_kind)}
        found |= {one.session: one for one in of_kind if one.group}
    return found.values()


def _bars(seen: Collection[_Seen], span: Span, now: datetime) -> tuple[TimeBar, ...]:
    """Over the time that was chosen, else over that of what was found."""
    if not seen:
        return ()
    times = sorted(one.at for one in seen)
    last = span.until or max(now, datetime.fromtimestamp(times[0], UTC))
    first = span.since or datetime.fromtimestamp(_begin(times, last.timestamp()), UTC)
    length = max((last - first) / BARS, datetime.resolution)
    bars = tuple(TimeBar(first + number * length, first + (number + 1) * length) for number in range(BARS))
    begin, seconds = first.timestamp(), length.total_seconds()
    alike = Counter((int((one.at - begin) / seconds), one.status, one.replay) for one in seen if one.at >= begin)
    for (number, status, replay), count in alike.items():
        bar = bars[min(number, BARS - 1)]
        bar.outcomes[status] += count
        bar.cold += count if replay == "cold" else 0
    return bars


def _begin(times: list[float], last: float) -> float:
    """A sixth of the sessions, where they are much older, does not squeeze the others into the last bars."""
    few = max(len(times) // 6, min(len(times) // 4, 1))
    return times[few] if (last - times[few]) * 3 < last - times[0] else times[0]


def _counts(read: list[_Seen], key: str) -> tuple[tuple[str, int], ...]:
    """Sessions of which any run has the value: as many as the list has that is narrowed to it."""
    sessions: dict[str | None, set[int]] = defaultdict(set)
    for value, one in zip(map(attrgetter(key), read), read, strict=True):
        sessions[value].add(one.session)
    if key in _LISTS:
        sessions = _by_each(sessions)
    counts = [(value, len(found)) for value, found in sessions.items() if value]
    return tuple(sorted(counts, key=lambda pair: (-pair[1], pair[0]))[:KEPT])


def _by_each(sessions: dict[str | None, set[int]]) -> dict[str | None, set[int]]:
    """`sessions` are by lists of values."""
    found: dict[str | None, set[int]] = defaultdict(set)
    for text, having in sessions.items():
        for value in json.loads(text or "[]"):
            found[value] |= having
    return found


def _errors(read: list[_Seen], facets: Iterable[Facet]) -> dict[str, tuple[str, str]]:
    """Of the newest run of each group, without what differs from the oldest one; agents that fail alike are told
    apart."""
    shown = {value for facet in facets if facet.key == "group" for value, _ in facet.counts}
    oldest = {one.group: one.run for one in read if one.group in shown}
    newest = {one.group: one.run for one in reversed(read) if one.group in shown}
    columns = ("failure_group", "agent_name", "error_preview", "anomalies", "story")
    runs = Run.objects.only(*columns).in_bulk({*newest.values(), *oldest.values()})
    told = {str(name): _told(runs[pk], runs[oldest[name]]) for name, pk in newest.items() if pk in runs}
    often = Counter(words for words, _ in told.values())
    return {name: (words, agent or "" if often[words] > 1 else "") for name, (words, agent) in told.items()}


def _told(newest: Run, oldest: Run) -> tuple[str, str | None]:
    told = told_of(newest)
    differs = newest.error_preview != oldest.error_preview
    return without_values(told) if differs else told, newest.agent_name
