"""The address of the list of sessions: what is asked, of which time, in which order, and which one is looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponseRedirect, QueryDict
from django.urls import reverse

from sessions_app.core.errors import QueryError
from sessions_app.models import Project
from sessions_app.queries.sessions import NEWEST, ORDERS, Span
from sessions_app.web.periods import RANGES
from sessions_app.web.session_list.typed_times import read_time, spelled_time


@dataclass(frozen=True, kw_only=True, slots=True)
class ListAddress:
    """As it was written; `check` and `span` refuse what cannot be understood."""

    q: str = ""
    range: str = ""
    since: str = ""
    until: str = ""
    sort: str = NEWEST
    cursor: str = ""
    peek: str = ""
    """The session in the side panel."""
    zone: tzinfo = UTC
    """Of times without an offset; it belongs to the person and stands in no address."""

    @classmethod
    def read(cls, data: QueryDict, zone: tzinfo = UTC) -> ListAddress:
        asked = data.get("range", "")
        return cls(
            q=data.get("q", "").strip(),
            range="" if asked == "all" else asked,
            since=data.get("from", "").strip(),
            until=data.get("to", "").strip(),
            sort=data.get("sort", "") or NEWEST,
            cursor=data.get("cursor", ""),
            peek=data.get("peek", "").replace("\x00", ""),
            zone=zone,
        )

    def but(self, **changes: Any) -> ListAddress:
        return replace(self, **changes)

    def __str__(self) -> str:
        """From the question mark on. A list without anything asked is `?`."""
        parts = {
            "q": self.q,
            "range": self.range,
            "from": self.since,
            "to": self.until,
            "sort": "" if self.sort == NEWEST else self.sort,
            "cursor": self.cursor,
            "peek": self.peek,
        }
        return "?" + urlencode({name: value for name, value in parts.items() if value})

    @property
    def top(self) -> ListAddress:
        """The first page of the same list, with nothing beside it: where other orders and times lead."""
        return self.but(cursor="", peek="")

    @property
    def alone(self) -> ListAddress:
        """The same page of the list with nothing beside it."""
        return self.but(peek="")

    @property
    def is_newest_first(self) -> bool:
        return self.sort == NEWEST

    @property
    def has_times(self) -> bool:
        return bool(self.range or self.since or self.until)

    def check(self) -> None:
        if self.sort not in ORDERS:
            raise QueryError(f"sort is one of {', '.join(ORDERS)}.", part=f"sort={self.sort}")

    def span(self, now: datetime) -> Span:
        if self.range:
            if self.range not in RANGES:
                raise QueryError(f"range is one of {', '.join(RANGES)}, all.", part=f"range={self.range}")
            return Span(since=now - RANGES[self.range][1])
        since, until = (read_time(*typed, now, self.zone) for typed in (("from", self.since), ("to", self.until)))
        span = Span(since=since, until=until)
        if span.since and span.until and span.since >= span.until:
            raise QueryError("The range ends before it begins.", part=f"from={self.since} to={self.until}")
        return span

    def absolute(self, now: datetime) -> ListAddress:
        """The same list with times that mean the same tomorrow."""
        try:
            span = self.span(now)
        except QueryError:
            return self
        if self.range:
            return self.but(range="", since=spelled_time(span.since), until=spelled_time(now + timedelta(seconds=1)))
        return self.but(since=spelled_time(span.since), until=spelled_time(span.until))


def to_list(project: Project, address: ListAddress) -> HttpResponseRedirect:
    """Back to the list as it was."""
    return HttpResponseRedirect(reverse("sessions", args=[project.slug]) + str(address).rstrip("?"))
