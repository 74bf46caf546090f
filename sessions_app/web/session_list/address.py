"""The address of the list of sessions: what is asked, of which time, in which order, and which one is looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from sessions_app.core.errors import QueryError
from sessions_app.queries.sessions import NEWEST, ORDERS, Span
from sessions_app.web.periods import RANGES


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

    @classmethod
    def read(cls, data: QueryDict) -> ListAddress:
        asked = data.get("range", "")
        return cls(
            q=data.get("q", "").strip(),
            range="" if asked == "all" else asked,
            since=data.get("from", "").strip(),
            until=data.get("to", "").strip(),
            sort=data.get("sort", "") or NEWEST,
            cursor=data.get("cursor", ""),
            peek=data.get("peek", "").replace("\x00", ""),
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
        span = Span(since=_time("from", self.since), until=_time("to", self.until))
        if span.since and span.until and span.since >= span.until:
            raise QueryError("The range ends before it begins.", part=f"from={self.since} to={self.until}")
        return span

    def absolute(self, now: datetime) -> ListAddress:
        """The same list with times that mean the same tomorrow."""
        if self.range not in RANGES:
            return self
        since = now - RANGES[self.range][1]
        return self.but(range="", since=_spelled(since), until=_spelled(now + timedelta(seconds=1)))


def _time(name: str, text: str) -> datetime | None:
    """ISO 8601; without an offset it is UTC."""
    if not text:
        return None
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        example = "2026-11-21T08:30Z"
        raise QueryError(f"{name} is a time as {example}, without an offset in UTC.", part=f"{name}={text}") from None


def _spelled(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
