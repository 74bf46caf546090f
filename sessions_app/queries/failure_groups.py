"""Runs that failed alike: how often and since when, the one that stands for them, and what became of it with the team's
code of today."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeGuard

from django.db.models import Count, Max, Min, Q, QuerySet
from django.db.models.functions import Least

from replay_goldens.trace import OF_ANOTHER_REQUEST
from sessions_app.core.failures import FailureOutcome, headline, outcome_of, signs_of, without_values
from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.search.query import Query, TextValue
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import OF_CODE, ReplayState
from sessions_app.queries.forks import agent_of
from sessions_app.queries.search import matching_runs
from sessions_app.queries.sessions import Span

MOST_SHOWN = 50
DAYS = 14
"""Of the bars beside a group."""
AT = Least("started_at", "received_at")
"""A clock that is ahead makes no run later than its arrival."""
_FIELDS = (
    "run_id", "input_preview", "agent_name", "failure_group", "status", "error_preview", "anomalies", "story",
    "verdict", "project", "session__session_id",
)  # fmt: skip
_OF_CONTENT = tuple(f"content__{name}" for name in ("header", "outline", "nodes", "keys"))


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureGroup:
    """Runs of one agent that failed alike."""

    fingerprint: str
    count: int
    today: int
    """Of the last 24 hours."""
    day_before: int
    newest: Run
    representative: Run
    """The newest one that can be replayed, or the newest one."""
    first_at: datetime
    last_at: datetime
    versions: tuple[str, ...]
    """Of the agent, in the last days; at most three."""
    days: tuple[int, ...]
    """How often on each of the last days, today last."""
    errors_differ: bool
    """In their words, as the numbers in them do."""

    @property
    def can_be_replayed(self) -> bool:
        return self.representative.verdict != "cold"

    @property
    def told(self) -> str:
        """What went wrong in the newest run, without what differs between the runs."""
        told = told_of(self.newest)
        return without_values(told) if self.errors_differ else told

    @property
    def is_new(self) -> bool:
        return self.today == self.count > 0

    @property
    def is_rising(self) -> bool:
        return not self.is_new and self.today > self.day_before

    @property
    def signs(self) -> tuple[str, ...]:
        """What went wrong in the representative."""
        return signs_in(self.representative)


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """The newest replay of a representative with one agent."""

    agent: str
    replay: Replay
    outcome: FailureOutcome | None
    """None while it is open."""

    @property
    def why(self) -> str | None:
        """Why nothing is known of a run that came to its end."""
        return OF_ANOTHER_REQUEST if self.outcome == "not_judged" else None


ORDERS = {"count": ("-count", "-newest"), "today": ("-today", "-last_at"), "last": ("-last_at", "-newest")}


def failure_groups(
    project: Project, query: Query, now: datetime, *, span: Span | None = None, order: str = "count"
) -> list[FailureGroup]:
    """Of the recorded runs that match, in an order of `ORDERS`. Three queries. Raises `QueryError`."""
    matching = matching_runs(Run.objects.filter(project=project), query)
    if span is not None and span.since is not None:
        matching = matching.filter(session__last_at__gte=span.since)
    return groups_of(matching, grouped(matching, now).order_by(*ORDERS[order])[:MOST_SHOWN], now)


def grouped(runs: QuerySet[Run], now: datetime) -> Any:  # the annotations are known at run time only
    """A row for each failure group: `failure_group`, `count`, `today`, `day_before`, `first_at`, `last_at`, the keys of
    its `newest` run and of the newest `playable` one, and the `first_error` and `last_error` by the alphabet."""
    day = timedelta(days=1)
    return (
        runs.filter(failure_group__isnull=False)
        .annotate(at=AT)
        .values("failure_group")
        .annotate(
            count=Count("pk"),
            today=Count("pk", filter=Q(at__gt=now - day)),
            day_before=Count("pk", filter=Q(at__gt=now - 2 * day, at__lte=now - day)),
            first_at=Min("at"),
            last_at=Max("at"),
            newest=Max("pk"),
            playable=Max("pk", filter=~Q(verdict="cold")),
            first_error=Min("error_preview"),
            last_error=Max("error_preview"),
        )
    )


def groups_of(runs: QuerySet[Run], rows: Iterable[dict[str, Any]], now: datetime) -> list[FailureGroup]:
    """What pages show of some rows of `grouped`. Two queries, beside the one for the rows."""
    rows = list(rows)
    wanted = {key for row in rows for key in (row["newest"], row["playable"]) if key}
    found = Run.objects.select_related("session").only(*_FIELDS).in_bulk(wanted)
    names = [row["failure_group"] for row in rows]
    recent = runs.annotate(at=AT).filter(failure_group__in=names, at__gt=now - DAYS * timedelta(days=1))
    days, versions = _in_days(recent.values_list("failure_group", "at", "agent_version"), now)
    return [
        FailureGroup(
            fingerprint=(name := row["failure_group"]),
            newest=found[row["newest"]],
            representative=found.get(row["playable"], found[row["newest"]]),
            versions=tuple(sorted(versions[name]))[:3],
            days=days.get(name, (0,) * DAYS),
            errors_differ=row["first_error"] != row["last_error"],
            **{key: row[key] for key in ("count", "today", "day_before", "first_at", "last_at")},
        )
        for row in rows
        if row["newest"] in found
    ]


def _in_days(
    found: Iterable[tuple[str | None, datetime, str | None]], now: datetime
) -> tuple[dict[str, tuple[int, ...]], dict[str, set[str]]]:
    times: dict[str, list[datetime]] = defaultdict(list)
    versions: dict[str, set[str]] = defaultdict(set)
    for name, at, version in found:
        times[str(name)].append(at)
        versions[str(name)] |= {version} if version else set()
    return {name: per_day(each, now) for name, each in times.items()}, versions


def per_day(times: Iterable[datetime], now: datetime) -> tuple[int, ...]:
    """How many are of each of the last days, today last; those before them are left out."""
    ago = Counter(max((now - at) // timedelta(days=1), 0) for at in times)
    return tuple(ago[day] for day in reversed(range(DAYS)))


def told_of(run: Run) -> str:
    """What went wrong in a run, from its columns."""
    return headline(error=run.error_preview, anomalies=_anomalies_of(run)) or run.story


def told_of_group(project: Project, query: Query) -> str:
    """What went wrong in the runs of the group that a query asks for; empty where it asks for none. One query."""
    names = [value.text for term in query.terms if term.key == "group" for value in term.values if _is_text(value)]
    if not names:
        return ""
    runs = Run.objects.filter(project=project, origin="recorded", failure_group__in=names)
    found = list(runs.only(*_TOLD).order_by("-pk")[:2])
    if not found:
        return ""
    told = told_of(found[0])
    differ = {run.error_preview for run in found} != {found[0].error_preview}
    return without_values(told) if differ else told


_TOLD = ("error_preview", "anomalies", "story")


def _is_text(value: object) -> TypeGuard[TextValue]:
    return isinstance(value, TextValue)


def failures_in(groups: Iterable[FailureGroup]) -> tuple[int, int]:
    """How many failures they are where the same failure of several agents is one, and how many of these happened in
    the last 24 hours."""
    groups = list(groups)
    return len({signs_in(each.newest) for each in groups}), len(
        {signs_in(each.newest) for each in groups if each.today}
    )


def signs_in(run: Run) -> tuple[str, ...]:
    """What went wrong in a run without what is of it alone, from its columns."""
    return signs_of(status=run.status, error=run.error_preview, anomalies=_anomalies_of(run))


def _anomalies_of(run: Run) -> list[Anomaly]:
    return [Anomaly.from_json(each) for each in run.anomalies]


def attempts_at(groups: Iterable[FailureGroup]) -> dict[int, dict[str, Attempt]]:
    """By the key of the representative and the name of the agent. One query."""
    signs = {group.representative.pk: group.signs for group in groups}
    replays = Replay.objects.filter(run__in=signs, mode__in=OF_CODE)
    found: dict[int, dict[str, Attempt]] = {key: {} for key in signs}
    for replay in replays.select_related("produced_run", "content").defer(*_OF_CONTENT).order_by("pk"):
        agent = agent_of(replay)
        if agent is not None and replay.order.get("on_difference") == "play_on":
            outcome = _outcome(replay, signs[replay.run_id])
            found[replay.run_id][agent] = Attempt(agent=agent, replay=replay, outcome=outcome)
    return found


def _outcome(replay: Replay, signs: tuple[str, ...]) -> FailureOutcome | None:
    if not replay.is_over:
        return None
    made = replay.produced_run
    if made is None or replay.state != ReplayState.DONE:
        return "could_not_run"
    is_of_another = "recorded_for_another_request" in replay.facts.get("sources", {})
    return outcome_of(signs, now=signs_in(made), status=made.status, is_of_another_request=is_of_another)
