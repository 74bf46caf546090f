"""Values that a project's newest runs hold, for the suggestions beside a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sessions_app.models import Project, Run, Session

NEWEST = 1000
"""Runs that are looked at, however many the project holds."""
SHOWN = 20
LONGEST = 120
"""Characters of a value that is worth suggesting."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenValue:
    key: str
    value: str
    count: int
    """Runs among the newest that hold it."""


def seen_values(project: Project) -> list[SeenValue]:
    """One query. The most frequent values of each key first."""
    newest = Session.objects.filter(project=project).order_by("-last_at", "-pk").values("pk")[:NEWEST]
    runs = Run.objects.filter(session__in=newest, origin="recorded").order_by("-pk")
    rows = list(runs.values_list("status", "verdict", "user_id", "model", "model_names", "tool_names")[:NEWEST])
    return [
        *_counted("status", ([status] for status, *_ in rows)),
        *_counted("verdict", ([verdict] for _, verdict, *_ in rows)),
        *_counted("user", ([user] for _, _, user, *_ in rows)),
        *_counted("model", ({model, *names} for _, _, _, model, names, _ in rows)),
        *_counted("tool", (set(tools) for *_, tools in rows)),
    ]


def _counted(key: str, values: Iterable[Iterable[str | None]]) -> list[SeenValue]:
    counts = Counter(value for of_run in values for value in of_run if value and _is_readable(value))
    most = sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))
    return [SeenValue(key=key, value=value, count=count) for value, count in most[:SHOWN]]


def _is_readable(value: str) -> bool:
    """What could not be told apart when it is read is better looked up than suggested."""
    return len(value) <= LONGEST and value.isprintable()
