"""Which replays are listed; all of it stands in the address."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.db.models import Q
from django.http import QueryDict

from sessions_app.core.search.query import parse_query
from sessions_app.models import Project, Run
from sessions_app.queries.replays import FILTERS
from sessions_app.queries.search import matching_runs
from sessions_app.web.periods import Period


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    state: str
    """The name of one of `FILTERS`."""
    period: Period
    query: str
    """Of the runs that were replayed, as in the list of sessions."""

    @classmethod
    def read(cls, data: QueryDict) -> Asked:
        state = data.get("state", "all")
        return cls(
            state=state if state in FILTERS else "all", period=Period.read(data), query=data.get("q", "").strip()
        )

    def address(self, state: str = "", **more: object) -> str:
        parts = {"range": self.period.range, "agent": self.period.agent, "q": self.query, **more}
        return "?" + urlencode({"state": state or self.state} | {name: value for name, value in parts.items() if value})

    @property
    def is_narrowed(self) -> bool:
        return bool(self.query or self.period.range or self.period.agent)

    def which(self, project: Project, now: datetime) -> Q:
        """Whatever their state. Raises `QueryError`."""
        since = self.period.span(now).since
        found = Q(created_at__gte=since) if since else Q()
        found &= Q(run__agent_name=self.period.agent) if self.period.agent else Q()
        if not self.query:
            return found
        return found & Q(run__in=matching_runs(Run.objects.filter(project=project), parse_query(self.query)))
