"""In how many of a project's latest runs each anomaly rule found something."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Func, JSONField

from sessions_app.models import Project, Run

NEWEST = 10_000
"""Runs that are looked at, however many the project holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FiredRules:
    runs: int
    """That were looked at."""
    by_code: dict[str, int]


def fired_rules(project: Project, since: datetime) -> FiredRules:
    """Of the runs that arrived since then. Two queries."""
    newest = Run.objects.filter(project=project, origin="recorded").order_by("-pk").values("pk")[:NEWEST]
    runs = Run.objects.filter(pk__in=newest, received_at__gte=since)
    code = Func("anomalies", template="jsonb_path_query(%(expressions)s, '$[*].code')", output_field=JSONField())
    counted = runs.annotate(code=code).values_list("code").annotate(count=Count("pk", distinct=True))
    return FiredRules(runs=runs.count(), by_code=dict(counted))
